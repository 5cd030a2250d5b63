// SPDX-License-Identifier: Apache-2.0
// Tables of tones and sharpness, in the arithmetic of either library: shared by the operators of
// these names and the policies.
#pragma once

#include "headrace/ops/color/color_steps.h"

namespace headrace {

// The same in both libraries.
PixelStep invert_step();
PixelStep posterize_step(int bits);  // number of bits that are kept
PendingPass equalize_pass();         // measures the image

// Inverts values greater than or equal to the threshold; torch compares in float32.
PixelStep solarize_step(double threshold, Arithmetic arithmetic);
PendingPass autocontrast_pass(Arithmetic arithmetic);  // measures the image

// Interpolates between its 3 x 3 blur (0) and the image (1), and extrapolates beyond.
PendingPass sharpness_pass(double factor, Arithmetic arithmetic);

}  // namespace headrace
