// SPDX-License-Identifier: Apache-2.0
// The position of a loader's consumer: received batches and epoch, delivered counts, and resume
// states. The batch maker may be ahead of the consumer, and some of its work may be discarded; this
// class keeps track of both. Modified by one thread; const members may be called by any.
#pragma once

#include <cstdint>
#include <optional>

#include "headrace/base/mutex.h"
#include "headrace/loader.h"

namespace headrace {

class Position {
 public:
  // The next batch, the number of bad records before it in the epoch, and whether any good record
  // was received.
  struct Place {
    int64_t epoch = 0, batch = 0, bad_records = 0;
    bool received = false;
  };

  // fingerprint: of everything that determines the order of records. streams: Sampler::streams().
  Position(uint64_t seed, const BatchLayout& layout, int world_size, uint64_t fingerprint,
           int64_t streams = 0);

  Place place() const EXCLUDES_LOCK(mutex_);
  uint64_t seed() const EXCLUDES_LOCK(mutex_);
  LoaderState state() const EXCLUDES_LOCK(mutex_);

  // Called when a batch is requested: take_back() returns to this position.
  void remember() EXCLUDES_LOCK(mutex_);
  void take_back() EXCLUDES_LOCK(mutex_);
  // A batch was received; bad_records: of the epoch so far.
  void receive(const Batch& batch, int64_t bad_records) EXCLUDES_LOCK(mutex_);
  // The batch failed: limits the count of bad records to those that were found.
  void fail(int64_t bad_records) EXCLUDES_LOCK(mutex_);
  void begin_epoch(int64_t epoch) EXCLUDES_LOCK(mutex_);

  // The maker's counts without the discarded work.
  DeliveredCounts delivered(const DeliveredCounts& made) const EXCLUDES_LOCK(mutex_);
  // An iteration begins, or the current one continues.
  void begin_iteration(const DeliveredCounts& made) EXCLUDES_LOCK(mutex_);
  // It has ended: the number of images repaired in it; 0 when called again.
  int64_t take_repaired(const DeliveredCounts& made) EXCLUDES_LOCK(mutex_);
  LoaderMark mark(const DeliveredCounts& made) const EXCLUDES_LOCK(mutex_);
  // Discards the batches after the mark, which are made again in the same iteration.
  // REQUIRES: its state is loaded.
  void go_back(const LoaderMark& mark, const DeliveredCounts& made) EXCLUDES_LOCK(mutex_);

  // Throws Exception HR0711 if the state belongs to different records, a different order or
  // different batches.
  void check(const LoaderState& state) const;
  // REQUIRES: check() has passed.
  void load(const LoaderState& state) EXCLUDES_LOCK(mutex_);

 private:
  LoaderState state_now() const REQUIRES_LOCK(mutex_);
  void move_to(const Place& place) REQUIRES_LOCK(mutex_);

  const BatchLayout layout_;
  const int world_size_;
  const uint64_t fingerprint_;
  const int64_t streams_;
  mutable Mutex mutex_;
  uint64_t seed_ GUARDED_BY(mutex_);
  Place place_ GUARDED_BY(mutex_), before_ GUARDED_BY(mutex_);
  DeliveredCounts discarded_ GUARDED_BY(mutex_);
  // Repaired images before the current iteration; nullopt between iterations.
  std::optional<int64_t> repaired_before_ GUARDED_BY(mutex_);
};

}  // namespace headrace
