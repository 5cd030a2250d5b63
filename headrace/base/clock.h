// SPDX-License-Identifier: Apache-2.0
// The clock that times waits and work, and the length of a single wait.
#pragma once

#include <chrono>

namespace headrace {

// Seconds since some moment; it never goes back.
inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// How long a wait lasts before it looks whether somebody wants it to end.
inline constexpr auto kWaitSlice = std::chrono::milliseconds(50);

}  // namespace headrace
