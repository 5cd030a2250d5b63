// SPDX-License-Identifier: Apache-2.0
// Resampling of planes whose samples do not fit bytes, equal to Pillow's Image.resize: floats as in
// mode "F", 16 bits as in mode "I;16" (where a sum exceeds its range, Pillow keeps the low byte of
// the truncated value; here it is clamped to 0 or 65535; the nearest pixel is selected as in all
// other modes). Uses double sums, an intermediate of the plane's type, and the pass order of
// vertical_first().
#pragma once

#include <cstddef>
#include <vector>

#include "headrace/kernels/resample/filter.h"

namespace headrace {

// Values of any dtype that float32 holds exactly.
struct WidePlane {
  static constexpr size_t kPadding = 7;  // samples that loops may read past the last one
  int width = 0, height = 0;
  std::vector<float> samples;

  WidePlane() = default;
  WidePlane(int width, int height) { resize(width, height); }
  // Reuses the memory if it is large enough.
  void resize(int new_width, int new_height) {
    width = new_width;
    height = new_height;
    samples.resize(size_t(width) * height + kPadding);
  }
  size_t held_bytes() const { return samples.capacity() * sizeof(float); }
  float* row(int y) { return samples.data() + size_t(y) * width; }
  const float* row(int y) const { return samples.data() + size_t(y) * width; }
};

// The type to which a sum is rounded.
enum class WideSample : uint8_t { kFloat32, kUInt16 };

// Resizes to the size of `out`. `between` is scratch memory.
void resample(const WidePlane& plane, Filter filter, WideSample sample, WidePlane& between,
              WidePlane& out);

}  // namespace headrace
