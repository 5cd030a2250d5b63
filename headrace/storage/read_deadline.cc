// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/read_deadline.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "headrace/base/clock.h"

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

thread_local const ReadDeadline* deadline = nullptr;

}  // namespace

ReadDeadline::ReadDeadline(double seconds, double waited)
    : seconds_(seconds), when_(now() + seconds - waited), outer_(deadline) {
  deadline = seconds > 0 ? this : nullptr;
}

ReadDeadline::~ReadDeadline() { deadline = outer_; }

const ReadDeadline* ReadDeadline::of_thread() { return deadline; }

void ReadDeadline::wait(Condition& changed, Mutex& mutex) {
  constexpr double kMax = 1000;  // maximum seconds per wait: larger values could overflow
  if (!deadline) {
    changed.wait(mutex);
  } else if (const double left = deadline->when_ - now(); left > 0) {
    const auto milliseconds = static_cast<int64_t>(std::min(left, kMax) * 1e3) + 1;
    changed.wait_for(mutex, std::chrono::milliseconds(milliseconds));
  }
}

bool ReadDeadline::is_over() const { return when_ <= now(); }

Error ReadDeadline::error(const std::string& path, int64_t offset) const {
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%g", seconds_);
  return {.code = &kTooLate,
          .what = "not received after " + std::string(seconds) + " s",
          .where = {.file = path, .offset = offset},
          .hint = "use a longer record_timeout=, or on_error=\"skip\" or \"substitute\""};
}

}  // namespace headrace
