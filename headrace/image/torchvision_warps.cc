// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/torchvision_warps.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace headrace {
namespace {

using Matrix = std::array<double, 6>;

double radians(double degrees) { return degrees * (M_PI / 180); }

// Python's angle % 360.
double degrees_in_turn(double angle) {
  const double turn = std::fmod(angle, 360.0);
  return turn < 0 ? turn + 360.0 : turn;
}

// The number of counterclockwise quarter turns, if the angle is a multiple of them. Odd numbers
// need a picture whose axes may be swapped.
std::optional<int> quarter_turns_of(double angle, bool square) {
  const double turns = degrees_in_turn(angle) / 90;
  if (turns != std::trunc(turns) || (std::fmod(turns, 2) != 0 && !square)) return {};
  return static_cast<int>(turns) % 4;
}

// torchvision's _get_inverse_affine_matrix, operation by operation.
Matrix matrix_of(const AffineArguments& by, const std::array<double, 2>& center, bool inverted) {
  const double turn = radians(by.angle), sx = radians(by.shear[0]), sy = radians(by.shear[1]);
  const double cx = center[0], cy = center[1];
  const double moved_x = cx + by.translate[0], moved_y = cy + by.translate[1];
  const double tan_sx = std::tan(sx), cos_sy = std::cos(sy);
  const double a = std::cos(turn - sy) / cos_sy, b = -(a * tan_sx + std::sin(turn));
  const double c = std::sin(turn - sy) / cos_sy, d = std::cos(turn) - c * tan_sx;
  if (inverted) {
    Matrix m{d / by.scale, -b / by.scale, 0, -c / by.scale, a / by.scale, 0};
    m[2] += cx - m[0] * moved_x - m[1] * moved_y;
    m[5] += cy - m[3] * moved_x - m[4] * moved_y;
    return m;
  }
  Matrix m{a * by.scale, b * by.scale, 0, c * by.scale, d * by.scale, 0};
  m[2] += moved_x - m[0] * cx - m[1] * cy;
  m[5] += moved_y - m[3] * cx - m[4] * cy;
  return m;
}

// Python's round(value, 15).
double rounded(double value) {
  char text[48];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, 15);
  double out = value;
  std::from_chars(text, end.ptr, out);
  return out;
}

std::array<double, 2> applied(const Matrix& m, double x, double y) {
  return {m[0] * x + m[1] * y + m[2], m[3] * x + m[4] * y + m[5]};
}

// From the smallest to the largest coordinate of the corners.
template <class Place>
std::array<double, 4> range_of_corners(const Place& place) {
  std::array<double, 4> range{};  // left, right, top, bottom
  for (int corner = 0; corner < 4; ++corner) {
    const std::array<double, 2> at = place(corner % 2, corner / 2);
    for (size_t axis = 0; axis < 2; ++axis) {
      double &low = range[2 * axis], &high = range[2 * axis + 1];
      low = corner ? std::min(low, at[axis]) : at[axis];
      high = corner ? std::max(high, at[axis]) : at[axis];
    }
  }
  return range;
}

// An extent for comparison with the limit, before anything is allocated.
int extent_from(double value) { return static_cast<int>(std::clamp(value, 0.0, double(1 << 30))); }

// torchvision's _compute_affine_output_size_tensor, in float32.
Size expanded_size(const Matrix& lookup, Size canvas) {
  const float half_w = static_cast<float>(0.5 * canvas.width);
  const float half_h = static_cast<float>(0.5 * canvas.height);
  const auto at = [&](int x, int y, size_t row, float half) {
    const float px = x ? half_w : -half_w, py = y ? half_h : -half_h;
    const float a = static_cast<float>(lookup[row]), b = static_cast<float>(lookup[row + 1]);
    // torch's order for so few rows.
    return double{((px * a + static_cast<float>(lookup[row + 2])) + py * b) + half};
  };
  const std::array<double, 4> range = range_of_corners([&](int x, int y) -> std::array<double, 2> {
    return {at(x, y, 0, half_w), at(x, y, 3, half_h)};
  });
  const auto cut = [](double value) {  // to 1e-4, so that a tiny excess does not add a pixel
    return std::trunc(static_cast<float>(value) * static_cast<float>(1 / 1e-4)) *
           static_cast<float>(1e-4);
  };
  return {extent_from(std::ceil(cut(range[3])) - std::floor(cut(range[2]))),
          extent_from(std::ceil(cut(range[1])) - std::floor(cut(range[0])))};
}

// Pillow's Image.rotate: its matrix, and its size with expand.
Size turn_as_pillow(double angle, bool grows, const std::array<double, 2>& center, Size canvas,
                    Matrix& m) {
  const double turn = -radians(angle);
  m = {rounded(std::cos(turn)),  rounded(std::sin(turn)), 0,
       rounded(-std::sin(turn)), rounded(std::cos(turn)), 0};
  const std::array<double, 2> moved = applied(m, -center[0] - 0, -center[1] - 0);
  m[2] = moved[0] + center[0];
  m[5] = moved[1] + center[1];
  if (!grows) return canvas;
  const std::array<double, 4> range = range_of_corners([&](int x, int y) {
    return applied(m, x * double(canvas.width), y * double(canvas.height));
  });
  const Size to{extent_from(std::ceil(range[3]) - std::floor(range[2])),
                extent_from(std::ceil(range[1]) - std::floor(range[0]))};
  const std::array<double, 2> shifted =
      applied(m, -(to.width - canvas.width) / 2.0, -(to.height - canvas.height) / 2.0);
  m[2] = shifted[0];
  m[5] = shifted[1];
  return to;
}

void put(const Matrix& from, std::array<double, 8>& to) { std::ranges::copy(from, to.begin()); }

std::array<double, 2> middle_of(Size canvas) { return {canvas.width * 0.5, canvas.height * 0.5}; }

// Whether a lookup slightly off the pixels' centers still takes these pixels. Pillow truncates
// interpolated values, and torch rounds them: for pictures up to these extents its float32
// positions are off by less than half a pixel, or interpolated values by less than half a level.
bool rounding_is_harmless(const WarpStyle& style, Size canvas) {
  const bool nearest = style.interpolation == Filter::kNearest;
  if (style.arithmetic == Arithmetic::kPillow) return nearest;
  return std::max(canvas.width, canvas.height) <= (nearest ? 1 << 20 : 1 << 12);
}

// Detects affine warps that are translations by whole pixels.
void note_shift(Warp& warp, Size canvas) {
  const auto& m = warp.lookup;
  const double x = -m[2], y = -m[5];
  const bool exact =
      m[0] == 1 && m[1] == 0 && m[3] == 0 && m[4] == 1 && x == std::trunc(x) && y == std::trunc(y);
  if (!exact || std::abs(x) >= canvas.width || std::abs(y) >= canvas.height) return;
  if (warp.style.arithmetic == Arithmetic::kTorch && !rounding_is_harmless(warp.style, canvas))
    return;
  warp.shift = {static_cast<int>(x), static_cast<int>(y)};
}

// torch's coordinates are relative to the centers of both pictures.
std::array<double, 2> from_middle(const std::optional<std::array<double, 2>>& center, Size canvas) {
  if (!center) return {0, 0};
  const std::array<double, 2> middle = middle_of(canvas);
  return {(*center)[0] - middle[0], (*center)[1] - middle[1]};
}

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

Warp affine_warp(const AffineArguments& by, Size canvas, const WarpStyle& style) {
  Warp warp{.style = style, .to = canvas};
  const std::array<double, 2> center = by.center.value_or(middle_of(canvas));
  const bool torch = style.arithmetic == Arithmetic::kTorch;
  put(matrix_of(by, torch ? from_middle(by.center, canvas) : center, true), warp.lookup);
  put(matrix_of(by, center, false), warp.points);
  const std::array<double, 2> none{};
  if (by.angle == 0 && by.translate == none && by.scale == 1 && by.shear == none) {
    warp.quarter_turns = 0;
    return warp;
  }
  const bool turns = by.translate == none && by.scale == 1 && by.shear == none && !by.center;
  if (turns && rounding_is_harmless(style, canvas)) {
    warp.quarter_turns = quarter_turns_of(-by.angle, canvas.width == canvas.height);
  }
  note_shift(warp, canvas);
  return warp;
}

Warp rotation_warp(double angle, bool grows, const std::optional<std::array<double, 2>>& center,
                   Size canvas, const WarpStyle& style) {
  Warp warp{.style = style, .to = canvas, .grows = grows};
  const std::array<double, 2> about = center.value_or(middle_of(canvas));
  put(matrix_of({.angle = -angle}, about, false), warp.points);
  const double turn = degrees_in_turn(angle);
  if (!center) {
    warp.quarter_turns = quarter_turns_of(angle, grows || canvas.width == canvas.height);
  }
  if (warp.quarter_turns) {
    if (*warp.quarter_turns % 2) std::swap(warp.to.width, warp.to.height);
    return warp;
  }
  Matrix lookup;
  if (style.arithmetic == Arithmetic::kTorch) {
    lookup = matrix_of({.angle = -turn}, from_middle(center, canvas), true);
    if (grows) warp.to = expanded_size(lookup, canvas);
  } else {
    warp.to = turn_as_pillow(turn, grows, about, canvas, lookup);
  }
  put(lookup, warp.lookup);
  if (grows && center) {
    // torchvision transforms the rows as if the whole picture were visible, which is not the case
    // for another center. Here they match the pixels.
    warp.grows = false;
    warp.points[2] += (warp.to.width - canvas.width) / 2.0;
    warp.points[5] += (warp.to.height - canvas.height) / 2.0;
  }
  return warp;
}

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
