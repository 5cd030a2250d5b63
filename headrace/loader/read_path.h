// SPDX-License-Identifier: Apache-2.0
// The dataset as a loader reads it: through the record cache and the row index, if enabled.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/loader.h"

namespace headrace {

class ReadPath {
 public:
  // wanted: the fields that will be read. Throws like with_row_index().
  ReadPath(const SourcePtr& source, const std::vector<bool>& wanted, const LoaderOptions& options);

  const SourcePtr& source() const { return row_index_.source; }
  // This process's part of the memory for cached records, and how much of that is used.
  size_t cache_bytes() const { return cache_.cache ? cache_use_.part_of(cache_use_.bytes) : 0; }
  size_t cache_bytes_used() const { return cache_use_.part_of(cache().bytes); }
  RecordCache::Counts cache() const;
  // "64 MiB, shared by the processes of this machine"
  std::string cache_text() const;
  BlockCache::Counts disk_cache() const;
  // Why a cache keeps less than it should; empty if it does not. Returned once.
  std::string caution();
  RowIndexStats row_index() const EXCLUDES_LOCK(mutex_);
  // Drops cached records whose files have changed since, so that they are read again; returns the
  // path of one such file.
  std::optional<std::string> look_at_files();
  // Writes the entries that were added to the row index since the last call.
  void keep();

 private:
  const RecordCacheOptions cache_use_;
  const std::vector<bool> wanted_;
  const BlockCache::UsePtr disk_cache_use_;  // null: not requested by this loader
  BlockCache* const disk_cache_;             // the cache of this process, never destroyed; null:
                                             // none
  WithRecordCache cache_;
  bool reported_refusal_ = false;  // that the cache keeps no, or not all, records
  WithRowIndex row_index_;
  mutable Mutex mutex_;
  // Entries of the row index when counted_at_ entries had been learned.
  mutable int64_t entries_ GUARDED_BY(mutex_) = 0, counted_at_ GUARDED_BY(mutex_) = -1;
};

// "1,200 of 1,300 pictures (grows, /…/rows.hri)"
std::string text_of(const RowIndexStats& stats);

}  // namespace headrace
