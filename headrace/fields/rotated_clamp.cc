// SPDX-License-Identifier: Apache-2.0
// Clips a rotated box at an image's edges, as torchvision does: the box is clipped at the left
// edge, four times, the image rotated by a quarter each time. Sides y = a x + b keep their slopes
// a; only b changes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "headrace/fields/rotated_box.h"

namespace headrace {
namespace {

// Like torch: NaN propagates from either argument.
template <class Real>
Real min_of(Real a, Real b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : std::min(a, b);
}
template <class Real>
Real max_of(Real a, Real b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : std::max(a, b);
}
template <class Real>
Real between(Real value, Real low, Real high) {
  return min_of(max_of(value, low), high);
}

template <class Real>
bool is_close(Real a, Real b) {
  const Real apart = std::abs(a - b);
  return a == b || (std::isfinite(apart) &&
                    apart <= static_cast<Real>(1e-8) + std::abs(static_cast<Real>(1e-5) * b));
}

// Index of the first corner: the leftmost, of two of these the upper one.
template <class Real>
size_t first_corner(const BoxCorners<Real>& box) {
  Real max_x = 0, max_y = 0;
  for (size_t i = 0; i < 8; i += 2) {
    max_x = i ? max_of(max_x, std::abs(box[i])) : std::abs(box[i]);
    max_y = i ? max_of(max_y, std::abs(box[i + 1])) : std::abs(box[i + 1]);
  }
  size_t first = 0;
  Real least = std::numeric_limits<Real>::quiet_NaN();
  for (size_t i = 0; i < 4; ++i) {
    const Real value = box[2 * i + 1] / max_y + (box[2 * i] / max_x) * 100;
    if (i > 0 && value >= least) continue;
    least = value;
    first = i;
    if (std::isnan(value)) break;
  }
  return first;
}

template <class Real>
BoxCorners<Real> beginning_at(const BoxCorners<Real>& box, size_t corner) {
  BoxCorners<Real> out = box;
  std::ranges::rotate(out, out.begin() + ptrdiff_t(2 * corner));
  return out;
}

// The slope of each side, from its corner to the next.
template <class Real>
struct Lines {
  explicit Lines(const BoxCorners<Real>& box) {
    for (size_t i = 0; i < 4; ++i) {
      const size_t next = (i + 1) % 4;
      a[i] = (box[2 * next + 1] - box[2 * i + 1]) / (box[2 * next] - box[2 * i]);
      b[i] = box[2 * i + 1] - a[i] * box[2 * i];
    }
  }
  // Each corner is where its side meets the previous one.
  BoxCorners<Real> meeting() const {
    BoxCorners<Real> out;
    for (size_t i = 0; i < 4; ++i) {
      const size_t before = (i + 3) % 4;
      out[2 * i] = -(b[i] - b[before]) / (a[i] - a[before]);
      out[2 * i + 1] = a[i] * out[2 * i] + b[i];
    }
    return out;
  }
  std::array<Real, 4> a, b;
};

template <class Real>
Real max_of(const std::array<Real, 4>& all) {
  return max_of(max_of(all[0], all[1]), max_of(all[2], all[3]));
}
template <class Real>
Real min_of(const std::array<Real, 4>& all) {
  return min_of(min_of(all[0], all[1]), min_of(all[2], all[3]));
}

// Moves the sides: outwards until the first and the last corner are on the edge (soft), or inwards
// until nothing is beyond it (hard); never beyond the original box.
template <class Real>
void move_sides(Lines<Real>& lines, const Lines<Real>& whole, Size canvas, Clamping clamping) {
  const auto& a = lines.a;
  auto& b = lines.b;
  const Real width = static_cast<Real>(canvas.width), height = static_cast<Real>(canvas.height);
  const Real b1 = b[0];
  b[0] = between(between(b[1], b1, b[2]), Real{0}, height);
  b[3] = between(between(b[2], b[1], b[3]), Real{0}, height);
  const bool hard = clamping == Clamping::kHard;
  if (hard) {
    const Real middle = b[0] = b[3] = (b[0] + b[3]) / 2;
    const std::array<Real, 4> lower{middle * a[1] / a[0], b[2] * a[1] / a[2],
                                    (a[0] - a[1]) * width + middle, (a[2] - a[1]) * width + b[2]};
    b[1] = min_of(max_of(lower), b[1]);
    const std::array<Real, 4> upper{height * (1 - a[2] / a[3]) + middle * a[2] / a[3],
                                    height * (1 - a[2] / a[1]) + b[1] * a[2] / a[1],
                                    (a[1] - a[2]) * width + b[1], (a[3] - a[2]) * width + middle};
    b[2] = max_of(min_of(upper), b[2]);
  }
  const auto& m = whole.b;
  b[0] = between(b[0], m[0], m[2]);
  b[2] = between(b[2], m[0], m[2]);
  b[1] = between(b[1], m[1], m[3]);
  b[3] = between(hard ? b[0] : b[3], m[1], m[3]);
  if (hard) b[0] = b[3];  // a single constant in torchvision's code
}

template <class Real>
BoxCorners<Real> clamp_left_side(const BoxCorners<Real>& box, const BoxCorners<Real>& whole,
                                 Size canvas, Clamping clamping) {
  const auto& [x1, y1, x2, y2, x3, y3, x4, y4] = box;
  Lines<Real> lines(box);
  move_sides(lines, Lines<Real>(whole), canvas, clamping);
  const BoxCorners<Real> met = lines.meeting();
  const bool level = is_close(y1, y2) || is_close(y3, y4);
  const bool gone = (x1 <= 0 && x2 <= 0 && x3 <= 0 && x4 <= 0) || is_close(y1, y4) ||
                    is_close(y2, y3) || (level && is_close(x1, x2));
  if (gone) return {};
  if (level) {
    BoxCorners<Real> out = box;
    out[0] = max_of(x1, Real{0});
    out[6] = max_of(x4, Real{0});
    return out;
  }
  const bool meets = std::ranges::none_of(met, [](Real value) { return std::isnan(value); });
  return x1 < 0 && meets ? met : box;
}

// Rotates by a quarter counterclockwise, including the canvas.
template <class Real>
void turn_quarter(BoxCorners<Real>& box, Size canvas) {
  for (size_t i = 0; i < 8; i += 2) {
    const Real x = box[i];
    box[i] = box[i + 1];
    box[i + 1] = static_cast<Real>(canvas.width) - x;
  }
}

}  // namespace

template <class Real>
BoxCorners<Real> clamped_rotated(const BoxCorners<Real>& box, Size canvas, Clamping clamping) {
  BoxCorners<Real> out = box, whole = box;
  for (int edge = 0; edge < 4; ++edge) {
    const size_t first = first_corner(out);
    whole = beginning_at(whole, first);
    out = clamp_left_side(beginning_at(out, first), whole, canvas, clamping);
    // Like torchvision, this reorders the corners and does not undo it; after four edges, the order
    // is the original one.
    out = beginning_at(out, first);
    whole = beginning_at(whole, first);
    turn_quarter(out, canvas);
    turn_quarter(whole, canvas);
    std::swap(canvas.width, canvas.height);
  }
  return out;
}

template BoxCorners<float> clamped_rotated(const BoxCorners<float>&, Size, Clamping);
template BoxCorners<double> clamped_rotated(const BoxCorners<double>&, Size, Clamping);

}  // namespace headrace
