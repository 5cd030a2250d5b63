// SPDX-License-Identifier: Apache-2.0
// One sample of a sharpened picture: the arithmetic of rows on the CPU (sharpen_rows.cc) and
// pictures on a GPU (batch/sharpen_pictures.h).
#pragma once

#include <cstdint>

#include "headrace/base/host_device_function.h"
#include "headrace/kernels/machine_floats.h"

namespace headrace {

// The 3 x 3 blur of both libraries has weights of 1, with 5 in the middle; they sum to 13. The
// weighted sum s divided by 13 and rounded is (2 s + 13) / 26, computed by a product and a shift
// that are exact for all sums up to 13 * 255; in 16-bit lanes, by the upper half of the product,
// shifted.
inline constexpr uint32_t kThirteenthFactor = 40330, kThirteenthShift = 4;
HEADRACE_HD inline uint32_t thirteenth_of(uint32_t sum) {
  return (2 * sum + 13) * kThirteenthFactor >> (16 + kThirteenthShift);
}

// Extrapolates a byte away from another one, as torch computes it; `rest` is float(1.0 - factor).
// The lowest byte of the return value is the result.
HEADRACE_HD inline uint32_t extrapolated(uint32_t value, uint32_t other, float rest) {
  const float own = floats::of(value);
  return floats::truncated_byte(floats::fma(floats::of(other) - own, rest, own));
}

}  // namespace headrace
