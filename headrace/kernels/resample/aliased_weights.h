// SPDX-License-Identifier: Apache-2.0
// Weights of a resize without antialiasing, like torch's interpolate(antialias=False) for uint8
// tensors on CPUs with AVX2 or more: a cubic of a = -0.75, weights beyond the border folded into
// the edge, and 16-bit weights with as many fraction bits as the largest of an axis allows.
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
  std::array<double, 4> weight;  // of the same inputs, before rounding
  double largest = 0;            // largest weight while weights beyond a border were folded in
};

// REQUIRES: is_aliased(filter).
AliasedTaps aliased_taps(Filter filter, int input, int output, int at);
// Fraction bits of a weight: one number for all outputs of an axis.
int aliased_precision(Filter filter, int input, int output);
// Converts a weight of this precision to units of 2^-22, as stored in tables.
int32_t aliased_weight(double weight, int precision);

}  // namespace headrace
