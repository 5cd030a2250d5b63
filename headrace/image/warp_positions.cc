// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/warp_positions.h"

#include <algorithm>

namespace headrace {
namespace {

float half_of(int extent) { return static_cast<float>(0.5 * extent); }

// torch multiplies smaller grids (contraction * rows * columns below 400) without fused
// multiply-adds.
bool is_fused(Size to) { return 6 * int64_t{to.height} * to.width >= 400; }

}  // namespace

TorchGrid torch_grid_of(const Warp& warp, Size from, const Window& part) {
  const bool affine = warp.map == Warp::Map::kAffine;
  const Size of = affine ? from : warp.to;
  TorchGrid grid;
  for (size_t i = 0; i < 3; ++i) {
    grid.x[i] = static_cast<float>(warp.lookup[i]) / half_of(of.width);
    grid.y[i] = static_cast<float>(warp.lookup[i + 3]) / half_of(of.height);
  }
  grid.w[0] = static_cast<float>(warp.lookup[6]);
  grid.w[1] = static_cast<float>(warp.lookup[7]);
  grid.divides = !affine;
  grid.fused = is_fused(warp.to);
  grid.first_column = (affine ? half_of(1 - warp.to.width) : 0.5f) + static_cast<float>(part.x);
  grid.first_row = (affine ? half_of(1 - warp.to.height) : 0.5f) + static_cast<float>(part.y);
  grid.half_width = half_of(from.width);
  grid.half_height = half_of(from.height);
  return grid;
}

TorchPositions::TorchPositions(const Warp& warp, Size from, const Window& part)
    : warp_(warp), part_(part), grid_(torch_grid_of(warp, from, part)) {
  if (!warp.field) return;
  for (int x = part.x; x < part.x + part.width; ++x) {
    identity_x_.push_back(identity_at<float>(x, from.width));
  }
  identity_x_.resize(identity_x_.size() + kRowPadding);
  if (!warp.bends()) by_y_.resize(identity_x_.size());
}

void TorchPositions::row(int y, float* x, float* y_of) {
  if (!warp_.field) return torch_positions(grid_, y, part_.width, x, y_of);
  y += part_.y;
  const WarpField& field = *warp_.field;
  const size_t begin = warp_.bends() ? size_t(y) * size_t(warp_.to.width) : 0;
  if (!warp_.bends()) std::ranges::fill(by_y_, field.y[size_t(y)]);
  displaced_positions(
      {.identity_x = identity_x_.data(),
       .identity_y = identity_at<float>(y, warp_.to.height),
       .by_x = field.x.data() + begin + size_t(part_.x),
       .by_y = by_y_.empty() ? field.y.data() + begin + size_t(part_.x) : by_y_.data(),
       .half_width = grid_.half_width,
       .half_height = grid_.half_height},
      part_.width, x, y_of);
}

}  // namespace headrace
