// SPDX-License-Identifier: Apache-2.0
// The clock that times waits and work, and the length of a single wait.
#pragma once

#include <chrono>

namespace headrace {

// Seconds since an arbitrary moment; monotonic.
inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The interval at which a waiting thread checks whether to stop.
inline constexpr auto kWaitSlice = std::chrono::milliseconds(50);

}  // namespace headrace
