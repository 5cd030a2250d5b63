// SPDX-License-Identifier: Apache-2.0
// Weights of a resize without antialiasing, as torch's interpolate(antialias=False) has them for
// tensors of uint8 on CPUs with AVX2 or more: a cubic of a = -0.75, neighbors beyond the border
// taken from it, and weights of 16 bits whose point stands where the largest of an axis allows.
// Verified for torch 2.13 and 2.15: no value differs.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "headrace/kernels/resample/filter.h"

namespace headrace {

// The inputs of one output.
struct AliasedTaps {
  int first = 0, count = 0;      // of the inputs
  std::array<double, 4> weight;  // of these, as they are before they are rounded
  double largest = 0;            // largest weight while those beyond a border were added
};

// REQUIRES: is_aliased(filter).
AliasedTaps aliased_taps(Filter filter, int input, int output, int at);
// How many bits of a weight stand behind the point: one number for all outputs of an axis.
int aliased_precision(Filter filter, int input, int output);
// A weight of this precision in 2^-22, in which tables have them.
int32_t aliased_weight(double weight, int precision);

}  // namespace headrace
