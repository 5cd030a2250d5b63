// SPDX-License-Identifier: Apache-2.0
// Open videos that replace whole files in the reads of one thread. If a video is a separate file in
// asynchronous storage (Source::separate_file), only the frames of a record's clips are in memory.
// The source reads as usual, and read_file_field() passes on the open videos.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "headrace/sources/schema.h"

namespace headrace {

struct StagedVideo {
  std::string path;
  std::shared_ptr<const File> file;         // shared: with the record's field
  std::shared_ptr<const VideoTrack> track;  // shared: with other records of the file
};

// Stages videos for the calling thread while this object exists. May be nested; the inner one
// applies.
class StagedVideos {
 public:
  explicit StagedVideos(std::span<const StagedVideo> videos);
  ~StagedVideos();
  StagedVideos(const StagedVideos&) = delete;
  StagedVideos& operator=(const StagedVideos&) = delete;

  // Null if no video with this path is staged.
  static const StagedVideo* find(std::string_view path);

 private:
  const std::span<const StagedVideo> outer_;
};

}  // namespace headrace
