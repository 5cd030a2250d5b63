// SPDX-License-Identifier: Apache-2.0
// How much of a long sweep a test runs: every case, or every fourth under a sanitizer, where a case
// takes up to ten times as long. CMakeLists.txt sets the variable.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace headrace {

inline const int64_t kSweepStep =
    std::getenv("HEADRACE_SWEEP_STEP") ? std::atoi(std::getenv("HEADRACE_SWEEP_STEP")) : 1;

}  // namespace headrace
