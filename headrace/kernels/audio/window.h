// SPDX-License-Identifier: Apache-2.0
// Window functions for frames, computed in float64 and rounded once.
#pragma once

#include <cstdint>
#include <vector>

namespace headrace {

enum class WindowShape : uint8_t { kHann, kHamming, kBlackman, kBartlett, kPovey, kRectangular };

// `periodic`: the window of length + 1 without its last sample. REQUIRES: length >= 1.
std::vector<float> window_of(WindowShape shape, int length, bool periodic, double blackman = 0.42);

}  // namespace headrace
