// SPDX-License-Identifier: Apache-2.0
// Arithmetic on coordinates, for kinds that consist of rows of coordinates. Results match
// torchvision's functionals: computed in the dtype of the field, except that scale factors are
// float32, and integers are scaled as floats and truncated.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "headrace/fields/geometry.h"
#include "headrace/fields/record.h"

namespace headrace {

// Whether coordinates of this dtype can be moved.
inline bool is_movable(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kInt32 ||
         dtype == DType::kInt64;
}

// The type in which scaling and clamping compute.
template <class Number>
using RealOf = std::conditional_t<std::is_same_v<Number, double>, double, float>;

// Integer arithmetic wraps: hostile values must not cause undefined behavior.
template <class Number>
Number plus(Number a, Number b) {
  if constexpr (std::is_integral_v<Number>) {
    using Unsigned = std::make_unsigned_t<Number>;
    return static_cast<Number>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return a + b;
  }
}
template <class Number>
Number minus(Number a, Number b) {
  if constexpr (std::is_integral_v<Number>) {
    using Unsigned = std::make_unsigned_t<Number>;
    return static_cast<Number>(static_cast<Unsigned>(a) - static_cast<Unsigned>(b));
  } else {
    return a - b;
  }
}

template <class Number>
Number times(Number a, Number b) {
  if constexpr (std::is_integral_v<Number>) {
    using Unsigned = std::make_unsigned_t<Number>;
    return static_cast<Number>(static_cast<Unsigned>(a) * static_cast<Unsigned>(b));
  } else {
    return a * b;
  }
}

// Converts to an integer by truncation; values out of range (and NaN) become the smallest integer,
// as on x86.
template <class Number, class Real>
Number number_from(Real value) {
  if constexpr (std::is_integral_v<Number>) {
    constexpr Real kEnd = -static_cast<Real>(std::numeric_limits<Number>::min());
    if (!(value >= -kEnd && value < kEnd)) return std::numeric_limits<Number>::min();
  }
  return static_cast<Number>(value);
}

template <class Number>
Number scaled(Number value, float scale) {
  using Real = RealOf<Number>;
  return number_from<Number>(static_cast<Real>(value) * static_cast<Real>(scale));
}

// The scale factor of a resize: torch divides in double precision, and stores a float.
inline float scale_of(int to, int from) {
  return static_cast<float>(static_cast<double>(to) / static_cast<double>(from));
}

// Maps points through a warp. `Real`: the type in which their dtype computes. Operations are in the
// order of torch's matrix product for 16 points or more: for fewer, torch sums in other orders,
// whose results differ in the last bits.
template <class Real>
class PointMap {
 public:
  PointMap(const Warp& warp, Size canvas)
      : divides_(warp.map == Warp::Map::kPerspective),
        bends_(warp.bends()),
        field_(warp.field.get()) {
    for (size_t i = 0; i < by_.size(); ++i) by_[i] = static_cast<Real>(warp.points[i]);
    if (!warp.grows) return;
    least_ = {std::numeric_limits<Real>::infinity(), std::numeric_limits<Real>::infinity()};
    for (const int x : {0, canvas.width}) {
      for (const int y : {0, canvas.height}) {
        const Real px = static_cast<Real>(x), py = static_cast<Real>(y);
        least_[0] = std::min(least_[0], of_corner(px, py, 0));
        least_[1] = std::min(least_[1], of_corner(px, py, 3));
      }
    }
  }
  std::array<Real, 2> operator()(Real x, Real y) const {
    if (bends_) return {displaced(x, y, 0), displaced(x, y, 1)};
    if (field_) return {between_lines(x, 0), between_lines(y, 1)};
    Real to_x = std::fma(y, by_[1], x * by_[0]) + by_[2];
    Real to_y = std::fma(y, by_[4], x * by_[3]) + by_[5];
    if (divides_) {
      const Real by = std::fma(y, by_[7], x * by_[6]) + Real{1};
      to_x /= by;
      to_y /= by;
    }
    return {to_x - least_[0], to_y - least_[1]};
  }

 private:
  // In the order of operations that torch uses for four points.
  Real of_corner(Real x, Real y, size_t row) const {
    if (std::is_same_v<Real, double>) return std::fma(y, by_[row + 1], x * by_[row]) + by_[row + 2];
    return (x * by_[row] + by_[row + 2]) + y * by_[row + 1];
  }

  // Like torchvision, uses the displacement at the point itself as an approximation of the inverse
  // map.
  Real displaced(Real x, Real y, int axis) const {
    const auto cut_to = [](Real at, int extent) {
      return at >= static_cast<Real>(extent) ? extent - 1 : at > 0 ? static_cast<int>(at) : 0;
    };
    const Size size = field_->size;
    const int column = cut_to(x, size.width), row = cut_to(y, size.height);
    const size_t at = size_t(row) * size_t(size.width) + size_t(column);
    const int extent = axis ? size.height : size.width;
    const Real identity = identity_at<Real>(axis ? row : column, extent);
    const Real from = identity - static_cast<Real>((axis ? field_->y : field_->x)[at]);
    return (from + Real{1}) * (Real{0.5} * static_cast<Real>(extent)) - Real{0.5};
  }

  // Extrapolates beyond the first and last lines.
  Real between_lines(Real at, size_t axis) const {
    const std::vector<double>& lines = field_->lines[axis];
    const auto cells = static_cast<ptrdiff_t>(lines.size()) - 1;
    const ptrdiff_t above = std::ranges::upper_bound(lines, double{at}) - lines.begin();
    const ptrdiff_t cell = std::clamp<ptrdiff_t>(above - 1, 0, cells - 1);
    const double begin = lines[size_t(cell)], end = lines[size_t(cell) + 1];
    const int extent = axis ? field_->size.height : field_->size.width;
    return static_cast<Real>((double(cell) + (double{at} - begin) / (end - begin)) *
                             (double(extent) / double(cells)));
  }

  const bool divides_, bends_;
  const WarpField* const field_;
  std::array<Real, 8> by_{};
  std::array<Real, 2> least_{};  // minimum over the canvas's corners, if it grows
};
// Calls `look` with a copy of the value's numbers, as a vector of their type. REQUIRES:
// is_movable(value.dtype).
template <class Look>
void look_at_coordinates(const FieldValue& value, const Look& look) {
  const auto as = [&]<class Number>(Number) {
    std::vector<Number> numbers(value.bytes.size() / sizeof(Number));
    if (!numbers.empty()) std::memcpy(numbers.data(), value.bytes.data(), value.bytes.size());
    look(numbers);
  };
  if (value.dtype == DType::kFloat32) as(float{});
  if (value.dtype == DType::kFloat64) as(double{});
  if (value.dtype == DType::kInt32) as(int32_t{});
  if (value.dtype == DType::kInt64) as(int64_t{});
}

// Calls `change` with a copy of the value's numbers, as a span of their type; the copy then becomes
// the value. REQUIRES: is_movable(value.dtype).
template <class Change>
void change_coordinates(FieldValue& value, const Change& change) {
  Buffer made(value.bytes.size());
  if (!value.bytes.empty()) std::memcpy(made.data(), value.bytes.data(), value.bytes.size());
  const auto as = [&]<class Number>(Number) {
    change(std::span(reinterpret_cast<Number*>(made.data()), made.size() / sizeof(Number)));
  };
  if (value.dtype == DType::kFloat32) as(float{});
  if (value.dtype == DType::kFloat64) as(double{});
  if (value.dtype == DType::kInt32) as(int32_t{});
  if (value.dtype == DType::kInt64) as(int64_t{});
  value.own(std::move(made));
}

}  // namespace headrace
