// SPDX-License-Identifier: Apache-2.0
#include "headrace/loader/position.h"

#include <algorithm>
#include <string>
#include <utility>

namespace headrace {
namespace {

const ErrorCode kOtherState{
    "HR0711", ErrorKind::kConfig, "state of a different run",
    "A state can resume only the run it was taken from: the same records in the same order, the "
    "same sampler and the same global batch. The numbers of threads and ranks may differ."};

}  // namespace

Position::Position(uint64_t seed, const BatchLayout& layout, int world_size, uint64_t fingerprint,
                   int64_t streams)
    : layout_(layout),
      world_size_(world_size),
      fingerprint_(fingerprint),
      streams_(streams),
      seed_(seed) {}

Position::Place Position::place() const {
  MutexLock lock(mutex_);
  return place_;
}

uint64_t Position::seed() const {
  MutexLock lock(mutex_);
  return seed_;
}

LoaderState Position::state() const {
  MutexLock lock(mutex_);
  return state_now();
}

LoaderState Position::state_now() const {
  return {.seed = seed_,
          .epoch = place_.epoch,
          .batch = place_.batch,
          .global_batch = layout_.global_batch(),
          .records = layout_.positions(),
          .bad_records = place_.bad_records,
          .fingerprint = fingerprint_,
          .streams = streams_};
}

// Ends the current iteration.
void Position::move_to(const Place& place) {
  place_ = place;
  repaired_before_.reset();
}

void Position::remember() {
  MutexLock lock(mutex_);
  before_ = place_;
}

void Position::take_back() {
  MutexLock lock(mutex_);
  move_to(before_);
}

void Position::receive(const Batch& batch, int64_t bad_records) {
  MutexLock lock(mutex_);
  place_ = {batch.epoch, batch.index + 1, bad_records, place_.received || batch.size > 0};
}

void Position::fail(int64_t bad_records) {
  MutexLock lock(mutex_);
  Place place = place_;
  place.bad_records = std::min(place.bad_records, bad_records);
  move_to(place);
}

void Position::begin_epoch(int64_t epoch) {
  MutexLock lock(mutex_);
  move_to({.epoch = epoch});
}

DeliveredCounts Position::delivered(const DeliveredCounts& made) const {
  MutexLock lock(mutex_);
  return made - discarded_;
}

void Position::begin_iteration(const DeliveredCounts& made) {
  MutexLock lock(mutex_);
  if (!repaired_before_) repaired_before_ = (made - discarded_).remarks.repaired;
}

int64_t Position::take_repaired(const DeliveredCounts& made) {
  MutexLock lock(mutex_);
  const int64_t repaired = (made - discarded_).remarks.repaired;
  return repaired - std::exchange(repaired_before_, repaired).value_or(repaired);
}

LoaderMark Position::mark(const DeliveredCounts& made) const {
  MutexLock lock(mutex_);
  return {state_now(), made - discarded_, repaired_before_};
}

void Position::go_back(const LoaderMark& mark, const DeliveredCounts& made) {
  MutexLock lock(mutex_);
  discarded_ += made - discarded_ - mark.counts;
  repaired_before_ = mark.repaired_before;
}

void Position::check(const LoaderState& state) const {
  const auto number = [](int64_t value) { return std::to_string(value); };
  if (state.global_batch != layout_.global_batch()) {
    raise(kOtherState,
          "the state was taken with a global batch of " + number(state.global_batch) +
              ", but this loader's is " + number(layout_.global_batch()) + " (" +
              number(layout_.rank_batch()) + " x " + number(world_size_) + " ranks)",
          "global_batch_size=" + number(state.global_batch));
  }
  if (state.streams != streams_) {
    raise(kOtherState,
          "the state was taken with " + number(state.streams) + " streams, but this loader has " +
              number(streams_),
          state.streams > 0 ? "sampler=hr.sampling.streams(count=" + number(state.streams) + ")"
                            : std::string());
  }
  if (state.records != layout_.positions() || state.fingerprint != fingerprint_) {
    raise(kOtherState,
          "the state belongs to different records or a different order: " + number(state.records) +
              " records per epoch in the state, " + number(layout_.positions()) +
              " in this loader, fingerprints " +
              (state.fingerprint == fingerprint_ ? "equal" : "differ"),
          "open the same source with the same sampler= and last_batch=");
  }
  if (state.epoch < 0 || state.batch < 0 || state.batch > layout_.batches()) {
    raise(kOtherState, "the state is at epoch " + number(state.epoch) + ", batch " +
                           number(state.batch) + ", but this loader's epochs have " +
                           number(layout_.batches()) + " batches");
  }
  if (state.bad_records < 0) {  // would widen the budget
    raise(kOtherState, "bad_records must not be negative (got " + number(state.bad_records) + ")");
  }
}

void Position::load(const LoaderState& state) {
  MutexLock lock(mutex_);
  seed_ = state.seed;
  move_to({state.epoch, state.batch, state.bad_records, state.batch > 0});
}

}  // namespace headrace
