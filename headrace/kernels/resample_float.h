// SPDX-License-Identifier: Apache-2.0
// Resampling of float32 planes, equal to Pillow's Image.resize on mode "F": sums in double, a
// float32 intermediate, and the pass order of vertical_first(). Scalar.
#pragma once

#include <cstddef>
#include <vector>

#include "headrace/kernels/filter.h"

namespace headrace {

struct FloatPlane {
  int width = 0, height = 0;
  std::vector<float> samples;

  FloatPlane(int width, int height)
      : width(width), height(height), samples(size_t(width) * height) {}
  float* row(int y) { return samples.data() + size_t(y) * width; }
  const float* row(int y) const { return samples.data() + size_t(y) * width; }
};

FloatPlane resample(const FloatPlane& plane, Filter filter, int to_width, int to_height);

}  // namespace headrace
