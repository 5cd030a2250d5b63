// SPDX-License-Identifier: Apache-2.0
#include "headrace/loader/position.h"

#include <algorithm>
#include <string>

namespace headrace {
namespace {

const ErrorCode kOtherState{
    "HR0711", ErrorKind::kConfig, "state of another run",
    "A state resumes only the run that it was taken from: the same records in the same order, the "
    "same sampler and the same global batch. The number of threads and of ranks may differ."};

}  // namespace

ConsumerPosition::ConsumerPosition(uint64_t seed, const BatchLayout& layout, int world_size,
                                   uint64_t fingerprint)
    : layout_(layout), world_size_(world_size), fingerprint_(fingerprint), seed_(seed) {}

ConsumerPosition::Place ConsumerPosition::place() const {
  MutexLock lock(mutex_);
  return place_;
}

uint64_t ConsumerPosition::seed() const {
  MutexLock lock(mutex_);
  return seed_;
}

LoaderState ConsumerPosition::state() const {
  MutexLock lock(mutex_);
  return {.seed = seed_,
          .epoch = place_.epoch,
          .batch = place_.batch,
          .global_batch = layout_.global_batch(),
          .records = layout_.positions(),
          .bad_records = place_.bad_records,
          .fingerprint = fingerprint_};
}

void ConsumerPosition::remember() {
  MutexLock lock(mutex_);
  before_ = place_;
}

void ConsumerPosition::take_back() {
  MutexLock lock(mutex_);
  place_ = before_;
}

void ConsumerPosition::receive(const Batch& batch, int64_t bad_records) {
  MutexLock lock(mutex_);
  place_ = {batch.epoch, batch.index + 1, bad_records, place_.received || batch.size > 0};
}

void ConsumerPosition::fail(int64_t bad_records) {
  MutexLock lock(mutex_);
  place_.bad_records = std::min(place_.bad_records, bad_records);
}

void ConsumerPosition::begin_epoch(int64_t epoch) {
  MutexLock lock(mutex_);
  place_ = {.epoch = epoch};
}

void ConsumerPosition::check(const LoaderState& state) const {
  const auto number = [](int64_t value) { return std::to_string(value); };
  if (state.global_batch != layout_.global_batch()) {
    raise(kOtherState,
          "the state was taken with a global batch of " + number(state.global_batch) +
              ", this loader's is " + number(layout_.global_batch()) + " (" +
              number(layout_.rank_batch()) + " x " + number(world_size_) + " ranks)",
          "global_batch_size=" + number(state.global_batch));
  }
  if (state.records != layout_.positions() || state.fingerprint != fingerprint_) {
    raise(kOtherState,
          "the state is of other records or another order: " + number(state.records) +
              " records an epoch there, " + number(layout_.positions()) + " here, fingerprints " +
              (state.fingerprint == fingerprint_ ? "equal" : "differ"),
          "open the same source with the same sampler= and last_batch=");
  }
  if (state.epoch < 0 || state.batch < 0 || state.batch > layout_.batches()) {
    raise(kOtherState, "epoch " + number(state.epoch) + ", batch " + number(state.batch) +
                           " does not exist here");
  }
  if (state.bad_records < 0) {  // which would widen the budget
    raise(kOtherState, number(state.bad_records) + " bad records are no number of them");
  }
}

void ConsumerPosition::load(const LoaderState& state) {
  MutexLock lock(mutex_);
  seed_ = state.seed;
  place_ = {state.epoch, state.batch, state.bad_records, state.batch > 0};
}

}  // namespace headrace
