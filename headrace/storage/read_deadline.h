// SPDX-License-Identifier: Apache-2.0
// How long this thread's reads wait for an asynchronous storage (AsyncStorage): until a deadline,
// which applies to all parts of a record together, or until the record is no longer needed. Answers
// that arrive later are dropped.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "headrace/base/error.h"
#include "headrace/base/mutex.h"

namespace headrace {

class ReadDeadline {
 public:
  // `seconds` from the first wait, minus `waited`, which have already passed; 0: no deadline. If
  // nested, the inner one applies.
  explicit ReadDeadline(double seconds, double waited = 0);
  ~ReadDeadline();
  ReadDeadline(const ReadDeadline&) = delete;
  ReadDeadline& operator=(const ReadDeadline&) = delete;

  // The seconds of the one that applies to this thread; 0: there is none.
  static double seconds_of_thread();

 private:
  friend class ReadWait;
  double left();  // begins the time, if this is the first wait

  const double seconds_, waited_;
  double end_ = 0;  // once begun
  ReadDeadline* const outer_;
};

// While it exists, this thread's reads stop waiting, with an error, once `stopped` is true.
class StoppableReads {
 public:
  explicit StoppableReads(const std::atomic<bool>& stopped);
  ~StoppableReads();
  StoppableReads(const StoppableReads&) = delete;
  StoppableReads& operator=(const StoppableReads&) = delete;

  static bool are_stopped();  // of this thread
  // Waits for the condition, and returns at times to let the caller check whether they are stopped.
  static void wait(Condition& changed, Mutex& mutex) REQUIRES_LOCK(mutex);

 private:
  const std::atomic<bool>* const outer_;
};

// For those that wait, on the thread of the read:
//   while (!arrived) {
//     if (ReadWait::is_over()) return ReadWait::error(path, offset);
//     ReadWait::wait(changed, mutex);
//   }
class ReadWait {
 public:
  static bool is_over();
  // Waits for the condition, at most until the wait is over; the caller checks whether it holds.
  static void wait(Condition& changed, Mutex& mutex) REQUIRES_LOCK(mutex);
  // HR0228, which on_error handles; or that the read was stopped, for a record that is dropped.
  // REQUIRES: is_over().
  static Error error(const std::string& path, int64_t offset);
};

}  // namespace headrace
