// SPDX-License-Identifier: Apache-2.0
// Resampling of 8-bit planes, equal to Pillow's Image.resize byte for byte, and of float32 planes,
// equal to Pillow's on mode "F".
//
// Two passes with 22-bit fixed-point weights and an 8-bit intermediate. The caller chooses the
// order of the passes with vertical_first(); flips and ranges are edits of the tables and cost nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/kernels/filter.h"

namespace headrace {

// The version of Pillow whose pass order is followed; see Note [Pass order] in resample.cc.
inline constexpr int kPillowMajor = 13;
// Whether the vertical pass comes first when a whole width x height picture becomes to_width x to_height.
bool vertical_first(int width, int height, int to_width, int to_height);

// One axis of a resize: for each output, the first input sample and a run of weights.
// Output i of the axis is sum_t weight(i, t) * input[first[i] + t], t < taps_of[i].
// Tables are padded for the vector kernels; a ResampleAxis is re-used from picture to picture.
class ResampleAxis {
 public:
  // The full resize input -> output, then outputs [begin, end) of it, then optionally mirrored
  // (`flip_input`: as if the input had been mirrored; `flip_output`: the outputs come mirrored).
  void make(Filter filter, int input, int output, int begin, int end, bool flip_input,
            bool flip_output);

  int outputs() const { return static_cast<int>(first_.size()); }
  int low() const { return low_; }     // input samples that are needed: [low, high)
  int high() const { return high_; }
  // ... tables: see resample.cc
  const std::vector<int32_t>& first() const { return first_; }

 private:
  std::vector<int32_t> first_;
  int low_ = 0, high_ = 0;
};

}  // namespace headrace
