// SPDX-License-Identifier: Apache-2.0
// Errors of files in any storage, and which of them are retried.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headrace/storage/storage.h"

namespace headrace {

// How often temporary errors (EIO, ESTALE, an unavailable network) are retried, and the first pause
// in milliseconds; each further pause is four times as long.
inline constexpr int kReadRetries = 3;
inline constexpr int kFirstPauseMs = 50;

bool is_transient(int error_number);

// Counts the attempts of one operation.
class RetryCount {
 public:
  // After a failure: the milliseconds to wait before the next attempt, or -1 if there is none.
  int pause_before_next(int error_number) {
    if (!is_transient(error_number) || done_ == kReadRetries) return -1;
    return kFirstPauseMs << (2 * done_++);
  }

 private:
  int done_ = 0;
};

// The storage error for a failed call on a path: HR0201 not found, HR0202 permission denied, ...
// `doing` is a verb: "open", "list".
Error storage_error(int error_number, std::string_view doing, const std::string& path,
                    int64_t offset = -1);
// HR0203; `what` is "a folder", "a named pipe".
Error not_regular_error(const std::string& path, std::string_view what);
// HR0205: `found` bytes instead of `expected`.
Error ended_early_error(const std::string& path, uint64_t expected, uint64_t found);
// HR0206: "the file has N bytes, <why>".
Error too_large_error(const std::string& path, uint64_t bytes, std::string_view why);
Error above_cap_error(const std::string& path, uint64_t bytes, uint64_t cap);

}  // namespace headrace
