// SPDX-License-Identifier: Apache-2.0
// Where a loader's consumer stands: what it received of which epoch, and the states that say so.
// Moved by one thread, asked by any.
#pragma once

#include <cstdint>

#include "headrace/base/mutex.h"
#include "headrace/loader.h"

namespace headrace {

class ConsumerPosition {
 public:
  // What comes next; of the epoch up to there, the bad records, and whether there was a good one.
  struct Place {
    int64_t epoch = 0, batch = 0, bad_records = 0;
    bool received = false;
  };

  // fingerprint: of what decides which record stands where.
  ConsumerPosition(uint64_t seed, const BatchLayout& layout, int world_size, uint64_t fingerprint);

  Place place() const EXCLUDES_LOCK(mutex_);
  uint64_t seed() const EXCLUDES_LOCK(mutex_);
  LoaderState state() const EXCLUDES_LOCK(mutex_);

  // A batch is asked for: take_back() leads back to here.
  void remember() EXCLUDES_LOCK(mutex_);
  void take_back() EXCLUDES_LOCK(mutex_);
  // A batch was received; bad_records: of the epoch so far.
  void receive(const Batch& batch, int64_t bad_records) EXCLUDES_LOCK(mutex_);
  // It failed: no more bad records count than were really met.
  void fail(int64_t bad_records) EXCLUDES_LOCK(mutex_);
  void begin_epoch(int64_t epoch) EXCLUDES_LOCK(mutex_);

  // Throws Exception HR0711 where it is a state of other records, another order or batches.
  void check(const LoaderState& state) const;
  // REQUIRES: checked.
  void load(const LoaderState& state) EXCLUDES_LOCK(mutex_);

 private:
  const BatchLayout layout_;
  const int world_size_;
  const uint64_t fingerprint_;
  mutable Mutex mutex_;
  uint64_t seed_ GUARDED_BY(mutex_);
  Place place_ GUARDED_BY(mutex_), before_ GUARDED_BY(mutex_);
};

}  // namespace headrace
