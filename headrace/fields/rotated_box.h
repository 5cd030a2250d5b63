// SPDX-License-Identifier: Apache-2.0
// Rotated boxes, with torchvision v2's arithmetic: conversion of formats, rectangles from
// parallelograms, and clamping to the canvas.
//
// The operations and their order are torchvision's. torchvision's sines, cosines and arctangents
// differ from the C library's in the last bits, so results may differ there, too.
#pragma once

#include <array>
#include <cmath>

#include "headrace/fields/field.h"
#include "headrace/image/picture.h"

namespace headrace {

// x1, y1, ..., x4, y4, in order around the box: kXYXYXYXY.
template <class Real>
using BoxCorners = std::array<Real, 8>;

template <class Real>
struct Rotation {
  Real cos, sin;
};
template <class Real>
Rotation<Real> rotation_by(Real radians) {
  return {std::cos(radians), std::sin(radians)};
}
template <class Real>
Real radians_of(Real degrees) {
  return degrees * static_cast<Real>(M_PI) / Real{180};
}

// Converts a rotated box to another format; `from` and `to` may be the same memory. REQUIRES:
// rotated formats in pixels.
template <class Real>
void convert_rotated(const Real* from, BoxFormat format, Real* to, BoxFormat wanted);

template <class Real>
BoxCorners<Real> corners_of_rotated(const Real* box, BoxFormat format) {
  BoxCorners<Real> corners;
  convert_rotated(box, format, corners.data(), BoxFormat::kXYXYXYXY);
  return corners;
}

// The rectangle with the parallelogram's center and longer diagonal.
template <class Real>
BoxCorners<Real> rectangle_of(const BoxCorners<Real>& parallelogram);

// Clamps a box to the canvas. REQUIRES: not Clamping::kNone.
template <class Real>
BoxCorners<Real> clamped_rotated(const BoxCorners<Real>& box, Size canvas, Clamping clamping);

}  // namespace headrace
