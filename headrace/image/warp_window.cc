// SPDX-License-Identifier: Apache-2.0
// The part of its source that a warp reads: for affine maps, the range between the corners' images.
#include <algorithm>
#include <cmath>

#include "headrace/image/warp.h"
#include "headrace/image/warp_positions.h"

namespace headrace {
namespace {

// Neighboring pixels that a filter reads (bicubic: two), plus a margin for rounding of the
// position.
constexpr double kReach = 3;
// With larger steps, fixed point may wrap around past a row's end.
constexpr double kMaxStep = 1000;

struct Reach {
  int begin, end;
};

// Between the positions of the ends, clipped to the picture; at least one pixel.
Reach reach_of(double low, double high, int extent) {
  const auto inside = [&](double at) {
    return static_cast<int>(std::clamp(at, 0.0, static_cast<double>(extent - 1)));
  };
  return {inside(std::floor(low - kReach)), inside(std::ceil(high + kReach)) + 1};
}

}  // namespace

Window window_read(const WarpedPicture& picture, const Window& part) {
  const Warp& warp = picture.warp;
  const Size from = source_size(picture);
  const Window all{0, 0, from.width, from.height};
  if (warp.map != Warp::Map::kAffine || warp.quarter_turns) return all;
  for (const size_t step : {0u, 1u, 3u, 4u}) {
    if (!(std::abs(warp.lookup[step]) < kMaxStep)) return all;
  }
  const bool torch = warp.style.arithmetic == Arithmetic::kTorch;
  double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
  for (int corner = 0; corner < 4; ++corner) {
    // Vector loops also look up pixels past a row's end.
    double x = part.x + (corner % 2 ? part.width + static_cast<double>(kRowPadding) : 0);
    double y = part.y + (corner / 2 ? part.height : 0);
    if (torch) {  // torch's coordinates are relative to both pictures' centers
      x -= 0.5 * warp.to.width;
      y -= 0.5 * warp.to.height;
    }
    for (size_t axis = 0; axis < 2; ++axis) {
      const double* const by = warp.lookup.data() + 3 * axis;
      const double middle = torch ? 0.5 * (axis ? from.height : from.width) : 0;
      const double at = by[0] * x + by[1] * y + by[2] + middle;
      if (!std::isfinite(at)) return all;
      low[axis] = std::min(low[axis], at);
      high[axis] = std::max(high[axis], at);
    }
  }
  // Offsets of nearest pixels are counted in whole rows.
  const bool nearest = picture.is_mask || warp.style.interpolation == Filter::kNearest;
  const Reach across = nearest ? Reach{0, from.width} : reach_of(low[0], high[0], from.width);
  const Reach down = reach_of(low[1], high[1], from.height);
  return {across.begin, down.begin, across.end - across.begin, down.end - down.begin};
}

}  // namespace headrace
