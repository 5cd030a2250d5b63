// SPDX-License-Identifier: Apache-2.0
// The position of a loader's consumer: received batches and epoch, delivered counts, and resume
// states. The batch maker may be ahead, and some of its work may be discarded: only this class
// knows the difference. Moved by one thread, asked by any.
#pragma once

#include <cstdint>
#include <optional>

#include "headrace/base/mutex.h"
#include "headrace/loader.h"

namespace headrace {

class Position {
 public:
  // The next batch; the bad records of the epoch up to there, and whether there was a good one.
  struct Place {
    int64_t epoch = 0, batch = 0, bad_records = 0;
    bool received = false;
  };

  // fingerprint: of what decides which record stands where. streams: Sampler::streams().
  Position(uint64_t seed, const BatchLayout& layout, int world_size, uint64_t fingerprint,
           int64_t streams = 0);

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

  // The part of the maker's work that was not discarded.
  DeliveredCounts delivered(const DeliveredCounts& made) const EXCLUDES_LOCK(mutex_);
  // An iteration begins, or the one that is under way is taken up again.
  void begin_iteration(const DeliveredCounts& made) EXCLUDES_LOCK(mutex_);
  // It has ended: the images that were repaired in it, once.
  int64_t take_repaired(const DeliveredCounts& made) EXCLUDES_LOCK(mutex_);
  LoaderMark mark(const DeliveredCounts& made) const EXCLUDES_LOCK(mutex_);
  // Discards the batches after the mark, which are made again in the same iteration.
  // REQUIRES: its state is loaded.
  void go_back(const LoaderMark& mark, const DeliveredCounts& made) EXCLUDES_LOCK(mutex_);

  // Throws Exception HR0711 where it is a state of other records, another order or batches.
  void check(const LoaderState& state) const;
  // REQUIRES: checked.
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
  DeliveredCounts in_vain_ GUARDED_BY(mutex_);
  // Images by the begin of the iteration that is under way; none where none is.
  std::optional<int64_t> repaired_before_ GUARDED_BY(mutex_);
};

}  // namespace headrace
