// SPDX-License-Identifier: Apache-2.0
// Caches the tables of the most recently opened video files, so that records that share a file read
// them once. Any thread may call it.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "headrace/base/mutex.h"
#include "headrace/codecs/video/video_track.h"
#include "headrace/storage/storage.h"

namespace headrace {

class RecentTracks {
 public:
  explicit RecentTracks(size_t budget_bytes) : budget_bytes_(budget_bytes) {}

  // The tables of that file if its identity is unchanged; null if they are not in the cache.
  std::shared_ptr<const VideoTrack> find(const std::string& path, const FileIdentity& identity)
      EXCLUDES_LOCK(mutex_);
  // Adds tables, and evicts the least recently used ones. Tables above the budget are not kept.
  void add(const std::string& path, const FileIdentity& identity,
           std::shared_ptr<const VideoTrack> track) EXCLUDES_LOCK(mutex_);

  // This process's cache: 64 MiB, about two million frames.
  static RecentTracks& of_process();
  // The memory of a file's tables.
  static size_t bytes_of(const VideoTrack& track);

 private:
  struct Kept {
    std::string path;
    FileIdentity identity;
    std::shared_ptr<const VideoTrack> track;  // shared: with the records that take frames of it
    size_t bytes;
  };

  void drop(std::list<Kept>::iterator kept) REQUIRES_LOCK(mutex_);

  Mutex mutex_;
  std::list<Kept> kept_ GUARDED_BY(mutex_);  // most recently used first
  // By Kept::path.
  std::unordered_map<std::string_view, std::list<Kept>::iterator> by_path_ GUARDED_BY(mutex_);
  size_t bytes_ GUARDED_BY(mutex_) = 0;
  const size_t budget_bytes_;
};

}  // namespace headrace
