// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/perspective.h"

namespace headrace {
namespace {

using Exact = __int128;  // for coordinates below 2^17 no product overflows
using Points = std::array<std::array<Exact, 2>, 4>;

// The map from the result to a picture whose last pixel is `right`, `bottom`, up to a factor, in
// integers: the inverse of the map from a square's corners to `at` (Heckbert, 1989).
std::array<Exact, 9> lookup_of(const Points& at, Exact right, Exact bottom) {
  std::array<Exact, 2> first, second, sum;
  for (size_t i = 0; i < 2; ++i) {
    first[i] = at[1][i] - at[2][i];
    second[i] = at[3][i] - at[2][i];
    sum[i] = at[0][i] - at[1][i] + at[2][i] - at[3][i];
  }
  const Exact g = sum[0] * second[1] - second[0] * sum[1];
  const Exact h = first[0] * sum[1] - sum[0] * first[1];
  const Exact i = first[0] * second[1] - second[0] * first[1];
  const auto along = [&](size_t axis) { return i * (at[1][axis] - at[0][axis]) + g * at[1][axis]; };
  const auto down = [&](size_t axis) { return i * (at[3][axis] - at[0][axis]) + h * at[3][axis]; };
  const Exact a = along(0), b = down(0), c = i * at[0][0];
  const Exact d = along(1), e = down(1), f = i * at[0][1];
  return {(e * i - f * h) * right,
          (c * h - b * i) * right,
          (b * f - c * e) * right,
          (f * g - d * i) * bottom,
          (a * i - c * g) * bottom,
          (c * d - a * f) * bottom,
          d * h - e * g,
          b * g - a * h,
          a * e - b * d};
}

// No perspective maps three collinear points to corners.
bool three_on_a_line(const Points& at) {
  for (size_t left_out = 0; left_out < 4; ++left_out) {
    const auto &a = at[(left_out + 1) % 4], &b = at[(left_out + 2) % 4],
               &c = at[(left_out + 3) % 4];
    if ((b[0] - a[0]) * (c[1] - a[1]) == (b[1] - a[1]) * (c[0] - a[0])) return true;
  }
  return false;
}

}  // namespace

std::optional<Warp> perspective_warp(const Corners& ends, Size canvas, const WarpStyle& style) {
  if (canvas.width < 2 || canvas.height < 2) return {};
  Points points;
  for (size_t i = 0; i < 4; ++i) points[i] = {Exact{ends[i][0]}, Exact{ends[i][1]}};
  const std::array<Exact, 9> numbers = lookup_of(points, canvas.width - 1, canvas.height - 1);
  if (three_on_a_line(points) || numbers[8] == 0) return {};
  Warp warp{.map = Warp::Map::kPerspective, .style = style, .to = canvas};
  auto& c = warp.lookup;
  for (size_t i = 0; i < c.size(); ++i) {
    c[i] = static_cast<float>(static_cast<double>(numbers[i]) / static_cast<double>(numbers[8]));
  }
  const double scale = c[0] * c[4] - c[1] * c[3];
  if (scale == 0) return {};
  warp.points = {(c[4] - c[5] * c[7]) / scale,         (-c[1] + c[2] * c[7]) / scale,
                 (c[1] * c[5] - c[2] * c[4]) / scale,  (-c[3] + c[5] * c[6]) / scale,
                 (c[0] - c[2] * c[6]) / scale,         (-c[0] * c[5] + c[2] * c[3]) / scale,
                 (-c[4] * c[6] + c[3] * c[7]) / scale, (-c[0] * c[7] + c[1] * c[6]) / scale};
  return warp;
}

}  // namespace headrace
