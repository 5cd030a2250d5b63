// SPDX-License-Identifier: Apache-2.0
// Records kept in memory as they are stored, so that they are read from disk once.
//
// The first records read stay, up to a number of bytes, and are never evicted: of a
// dataset that is a tenth too large, nine tenths are hits in every epoch, whatever the order. (A
// cache that forgets the oldest would have hardly any.) Loaders of one process that read the same
// fields of the same source share one. A record whose file was written again is read again, as far
// as files are looked at: Note [What a change of files does to records in memory].
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/sources/source.h"

namespace headrace {

// Thread-safe.
class RecordCache {
 public:
  struct Counts {
    int64_t records = 0;          // kept
    size_t bytes = 0, limit = 0;  // memory taken, table included
    int64_t hits = 0, misses = 0;
    uint64_t read_bytes = 0;  // by misses
  };

  // The process's cache for these fields of this source, created if there is none yet. One that is
  // in use keeps the largest limit requested. shared: every loader that reads through it; it goes
  // with the last of them.
  static std::shared_ptr<RecordCache> of(const Source& source, const std::vector<bool>& wanted,
                                         size_t limit);
  RecordCache(int64_t records, size_t limit);
  ~RecordCache();

  // Points out.fields to the cached values, which live as long as the cache. False: it is not
  // cached.
  bool find(int64_t record, RecordData& out) const;
  // The same, without counting it.
  bool has(int64_t record) const {
    return places_[static_cast<size_t>(record)].load(std::memory_order_acquire) != nullptr;
  }
  // Keeps a copy of the wanted values, where there is room.
  // files: digest_of_files() before it was read.
  void keep(int64_t record, const RecordData& data, uint64_t files);
  Counts counts() const;
  // Forgets records whose files have changed since they were read, which are then read again; the
  // path of such a file. Looks at the next `most_looks` of those that are kept, and where one has
  // changed at all. source, wanted: what the records were read from.
  std::optional<std::string> forget_changed(const Source& source, const std::vector<bool>& wanted,
                                            size_t most_looks);

 private:
  struct Slab;
  void* allocate(size_t bytes) EXCLUDES_LOCK(mutex_);
  void allow(size_t limit) EXCLUDES_LOCK(mutex_);

  std::vector<std::atomic<const uint8_t*>> places_;  // null: not kept
  std::atomic<size_t> next_look_{0};
  mutable std::atomic<int64_t> hits_{0}, misses_{0};
  std::atomic<uint64_t> read_bytes_{0};
  std::atomic<int64_t> kept_{0};
  mutable Mutex mutex_;
  std::vector<Slab> slabs_ GUARDED_BY(mutex_);
  size_t limit_ GUARDED_BY(mutex_), taken_ GUARDED_BY(mutex_) = 0;
};

// Digest of the files that contain a record's wanted fields, as they are now.
uint64_t digest_of_files(const Source& source, int64_t record, const std::vector<bool>& wanted);

struct WithRecordCache {
  SourcePtr source;
  SourcePtr cached;                    // the cached source
  std::shared_ptr<RecordCache> cache;  // shared: with other loaders; null: none is needed
};

// The source, read through a cache of `limit` bytes. A view (subset, split) reads through the cache
// of the source that it views. One that lies in memory already needs none. `wanted`: the fields
// that will be read.
WithRecordCache with_record_cache(const SourcePtr& source, const std::vector<bool>& wanted,
                                  size_t limit);

}  // namespace headrace
