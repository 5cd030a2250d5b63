// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/read_deadline.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>

#include "headrace/base/clock.h"
#include "headrace/storage/storage_errors.h"

namespace headrace {
namespace {

const ErrorCode kTooLate{
    "HR0228", ErrorKind::kStorage, "record not read in time",
    "The storage did not deliver the bytes of a record within record_timeout= seconds. "
    "on_error= decides what happens to the record, as with any bad record; with \"skip\" and "
    "\"substitute\" the batches then depend on the speed of the storage. Bytes that arrive "
    "later are dropped. Without record_timeout= the loader waits for slow storage; requests "
    "without any answer are retried, and finally fail with HR0221.",
    /*of_record=*/true};

thread_local ReadDeadline* deadline = nullptr;
thread_local const std::atomic<bool>* stopped_reads = nullptr;

}  // namespace

ReadDeadline::ReadDeadline(double seconds, double waited)
    : seconds_(seconds), waited_(waited), outer_(deadline) {
  deadline = seconds > 0 ? this : nullptr;
}

ReadDeadline::~ReadDeadline() { deadline = outer_; }

double ReadDeadline::seconds_of_thread() { return deadline ? deadline->seconds_ : 0; }

double ReadDeadline::left() {
  const double at = now();
  if (end_ == 0) end_ = at + seconds_ - waited_;
  return end_ - at;
}

StoppableReads::StoppableReads(const std::atomic<bool>& stopped) : outer_(stopped_reads) {
  stopped_reads = &stopped;
}

StoppableReads::~StoppableReads() { stopped_reads = outer_; }

bool StoppableReads::are_stopped() { return stopped_reads && *stopped_reads; }

void StoppableReads::wait(Condition& changed, Mutex& mutex) {
  if (stopped_reads) {
    changed.wait_for(mutex, kWaitSlice);
  } else {
    changed.wait(mutex);
  }
}

bool ReadWait::is_over() {
  return StoppableReads::are_stopped() || (deadline && deadline->left() <= 0);
}

void ReadWait::wait(Condition& changed, Mutex& mutex) {
  if (!deadline) return StoppableReads::wait(changed, mutex);
  constexpr double kMax = 1000;  // maximum seconds per wait: larger values could overflow
  const double left = std::min(deadline->left(), kMax);
  if (left <= 0) return;
  auto milliseconds = std::chrono::milliseconds(static_cast<int64_t>(left * 1e3) + 1);
  if (stopped_reads) milliseconds = std::min(milliseconds, kWaitSlice);
  changed.wait_for(mutex, milliseconds);
}

Error ReadWait::error(const std::string& path, int64_t offset) {
  if (StoppableReads::are_stopped() || !deadline) {
    return storage_error(ECANCELED, "read", path, offset);
  }
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%g", deadline->seconds_);
  return {.code = &kTooLate,
          .what = "not received after " + std::string(seconds) + " s",
          .where = Where{.file = path, .offset = offset},
          .hint = "use a longer record_timeout=, or on_error=\"skip\" or \"substitute\""};
}

}  // namespace headrace
