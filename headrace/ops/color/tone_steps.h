// SPDX-License-Identifier: Apache-2.0
// Tables of tones and sharpness, in the arithmetic of either library: what the operators of these
// names and the policies share.
#pragma once

#include "headrace/ops/color/color_steps.h"

namespace headrace {

// Both libraries' are the same of these.
PixelStep invert_step();
PixelStep posterize_step(int bits);               // so many of 8 stay
PixelStep equalize_step(const Picture& picture);  // measured

// Values that are not below it are inverted; torch compares in float32.
PixelStep solarize_step(double threshold, Arithmetic arithmetic);
PixelStep autocontrast_step(const Picture& picture, Arithmetic arithmetic);  // measured

// A picture of float32, by tables of 8 bits.
Picture equalized_floats(const Picture& picture);
// Drawn towards its blur of 3 x 3 (0), left as it is (1), or drawn away from it.
Picture sharpened(const Picture& picture, double factor, Arithmetic arithmetic);

}  // namespace headrace
