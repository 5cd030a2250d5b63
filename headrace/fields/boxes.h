// SPDX-License-Identifier: Apache-2.0
// Arithmetic on boxes other than geometric moves: clamping, and conversion between formats, like
// torchvision v2's convert_bounding_box_format, in the dtype of the boxes: halves of integers are
// floored, but the conversion from center to corners uses floats and truncates.
#pragma once

#include "headrace/fields/coordinates.h"
#include "headrace/fields/field.h"
#include "headrace/fields/record.h"

namespace headrace {

// Half of a number; for integers, the floor of it.
template <class Number>
Number half_of(Number value) {
  if constexpr (std::is_integral_v<Number>) return value >> 1;
  return value / 2;
}

template <class Number>
void corners_from_center(Number* box) {
  using Real = RealOf<Number>;
  for (int i = 0; i < 2; ++i) {
    const Real extent = static_cast<Real>(box[i + 2]);
    const Real low = static_cast<Real>(box[i]) - extent / 2;
    box[i] = number_from<Number>(low);
    box[i + 2] = number_from<Number>(extent + low);
  }
}

// REQUIRES: neither format is kUnspecified, normalized or rotated (rotated_box.h).
template <class Number>
void convert_box(Number* box, BoxFormat from, BoxFormat to) {
  if (from == to) return;
  if (from == BoxFormat::kXYWH && to == BoxFormat::kCXCYWH) {
    for (int i = 0; i < 2; ++i) box[i] = plus(box[i], half_of(box[i + 2]));
    return;
  }
  if (from == BoxFormat::kCXCYWH && to == BoxFormat::kXYWH) {
    if constexpr (!std::is_integral_v<Number>) {  // like torchvision: keeps the size exactly
      for (int i = 0; i < 2; ++i) box[i] -= box[i + 2] / 2;
      return;
    }
  }
  if (from == BoxFormat::kXYWH) {
    for (int i = 0; i < 2; ++i) box[i + 2] = plus(box[i + 2], box[i]);
  }
  if (from == BoxFormat::kCXCYWH) corners_from_center(box);
  if (to == BoxFormat::kXYXY) return;
  for (int i = 0; i < 2; ++i) {
    box[i + 2] = minus(box[i + 2], box[i]);
    if (to == BoxFormat::kCXCYWH) box[i] = half_of(plus(plus(box[i], box[i]), box[i + 2]));
  }
}

// The pixel format that corresponds to a normalized format; other formats are returned unchanged.
inline BoxFormat of_pixels(BoxFormat format) {
  if (!is_normalized(format)) return format;
  if (is_rotated(format)) return BoxFormat::kXYXYXYXY;
  constexpr int kApart =
      static_cast<int>(BoxFormat::kXYXYNormalized) - static_cast<int>(BoxFormat::kXYXY);
  return static_cast<BoxFormat>(static_cast<int>(format) - kApart);
}

// Clamps boxes to the canvas, like torchvision's clamp_bounding_boxes. REQUIRES: boxes in pixels,
// with a dtype that is_movable().
void clamp_boxes(FieldValue& value, Size canvas, Clamping clamping);

}  // namespace headrace
