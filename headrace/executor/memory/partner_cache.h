// SPDX-License-Identifier: Apache-2.0
// A cache of prepared records, with their pixels, from which a step takes its partners when later
// positions draw them: Note [Near partners] in ops/op.h. Hits and misses do not affect the contents
// of batches. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "headrace/base/mutex.h"
#include "headrace/fields/record.h"

namespace headrace {

struct CachedPartner {
  Record record;
  // Bytes requested before it was prepared. A row that finds it requests the same number: which
  // rows are too large must not depend on the cache.
  size_t reserved = 0;
};

class PartnerCache {
 public:
  // `bytes`: limit for all of them together.
  explicit PartnerCache(size_t bytes) : limit_(bytes) {}

  // Null if it is not cached. shared: it may be dropped while a worker still copies it.
  std::shared_ptr<const CachedPartner> find(int64_t epoch, int64_t position) const
      EXCLUDES_LOCK(mutex_);
  // Drops earlier positions to make room, and does not keep the record if that is not enough. The
  // record must own its fields' data.
  void keep(int64_t epoch, CachedPartner partner) EXCLUDES_LOCK(mutex_);
  void clear() EXCLUDES_LOCK(mutex_);
  size_t held_bytes() const EXCLUDES_LOCK(mutex_);

 private:
  struct Kept {
    std::shared_ptr<const CachedPartner> partner;
    size_t bytes = 0;
  };
  const size_t limit_;
  mutable Mutex mutex_;
  std::map<std::pair<int64_t, int64_t>, Kept> kept_ GUARDED_BY(mutex_);  // by epoch and position
  size_t held_ GUARDED_BY(mutex_) = 0;
};

}  // namespace headrace
