// SPDX-License-Identifier: Apache-2.0
// The deadline of this thread's reads from an asynchronous storage (AsyncStorage): one for all
// parts of a record. Answers that arrive later are dropped.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/base/error.h"
#include "headrace/base/mutex.h"

namespace headrace {

class ReadDeadline {
 public:
  // `seconds` from now, minus `waited`, which have already passed; 0: no deadline. If nested, the
  // inner one applies.
  explicit ReadDeadline(double seconds, double waited = 0);
  ~ReadDeadline();
  ReadDeadline(const ReadDeadline&) = delete;
  ReadDeadline& operator=(const ReadDeadline&) = delete;

  // The deadline of this thread's reads; null if there is none.
  static const ReadDeadline* of_thread();
  // Waits for the condition, at most until the deadline; the caller checks whether it holds.
  static void wait(Condition& changed, Mutex& mutex) REQUIRES_LOCK(mutex);
  bool is_over() const;
  // HR0228, which on_error handles.
  Error error(const std::string& path, int64_t offset) const;

 private:
  const double seconds_, when_;
  const ReadDeadline* const outer_;
};

}  // namespace headrace
