// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/boxes/anchor_match.h"

#include <limits>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/float_lanes_scalar.h"

// After its lanes:
#include "headrace/kernels/boxes/anchor_match_loops.h"

namespace headrace {

void AnchorColumns::add(float x0, float y0, float x1, float y1) {
  constexpr size_t kMostLanes = 16;
  constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  const auto set = [&](std::vector<float>& column, float value) {
    if (size_ == column.size()) column.resize(size_ + kMostLanes, kNone);
    column[size_] = value;
  };
  set(left, x0);
  set(top, y0);
  set(right, x1);
  set(bottom, y1);
  set(area, (x1 - x0) * (y1 - y0));
  ++size_;
}

int32_t match_anchors(const AnchorColumns& anchors, const float* box, int32_t row,
                      AnchorMatches& matches) {
  static const ByLevel<const AnchorKernels*> by_level{
      &kKernels, anchor_kernels_avx2(), anchor_kernels_avx512(), anchor_kernels_neon()};
  return by_level.in_force()->match(anchors, box, row, matches);
}

}  // namespace headrace
