// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/memory/memory_gate.h"

#include <algorithm>
#include <chrono>
#include <string>

namespace headrace {
namespace {

using Clock = std::chrono::steady_clock;

const ErrorCode kRecordTooLarge{
    "HR0703", ErrorKind::kResource, "record exceeds the memory left by memory_limit",
    "Decoding one record may use a third of what memory_limit leaves after two batches (a sixth if "
    "fields are delivered as lists), for any number of threads, and this record needs more. Raise "
    "memory_limit, or let on_error= drop such records."};

}  // namespace

Error MemoryGate::refusal(size_t bytes) const {
  return {.code = &kRecordTooLarge,
          .what = "needs " + std::to_string((bytes >> 20) + 1) +
                  " MiB of working memory, but memory_limit leaves " +
                  std::to_string(largest_ >> 20) + " MiB for one record",
          .hint = "raise memory_limit, or use a smaller batch_size"};
}

std::optional<GateHold> MemoryGate::acquire(int64_t position, size_t bytes) {
  if (bytes == 0) return GateHold();
  if (bytes > limit_) return std::nullopt;
  MutexLock lock(mutex_);
  if (used_ + bytes > limit_ || !waiting_.empty()) {
    const Clock::time_point begin = Clock::now();
    auto mine = waiting_.insert(position);
    while (used_ + bytes > limit_ || mine != waiting_.begin()) freed_.wait(mutex_);
    waiting_.erase(mine);
    waited_seconds_ += std::chrono::duration<double>(Clock::now() - begin).count();
    freed_.notify_all();
  }
  used_ += bytes;
  peak_ = std::max(peak_, used_);
  return GateHold(*this, bytes);
}

std::optional<GateHold> MemoryGate::try_acquire(size_t bytes) {
  if (bytes == 0) return GateHold();
  MutexLock lock(mutex_);
  if (bytes > limit_ || used_ > limit_ - bytes) return std::nullopt;
  used_ += bytes;
  peak_ = std::max(peak_, used_);
  return GateHold(*this, bytes);
}

void MemoryGate::release(size_t bytes) {
  MutexLock lock(mutex_);
  used_ -= bytes;
  if (!waiting_.empty()) freed_.notify_all();
}

size_t MemoryGate::used() const {
  MutexLock lock(mutex_);
  return used_;
}

size_t MemoryGate::peak() const {
  MutexLock lock(mutex_);
  return peak_;
}

double MemoryGate::waited_seconds() const {
  MutexLock lock(mutex_);
  return waited_seconds_;
}

}  // namespace headrace
