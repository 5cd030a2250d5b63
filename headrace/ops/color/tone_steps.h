// SPDX-License-Identifier: Apache-2.0
// Tables of tones and sharpness, in the arithmetic of either library: shared by the operators of
// these names and the policies.
#pragma once

#include "headrace/ops/color/color_steps.h"

namespace headrace {

// Both libraries' are the same of these.
PixelStep invert_step();
PixelStep posterize_step(int bits);  // so many of 8 stay
PendingPass equalize_pass();         // measured

// Values that are not below it are inverted; torch compares in float32.
PixelStep solarize_step(double threshold, Arithmetic arithmetic);
PendingPass autocontrast_pass(Arithmetic arithmetic);  // measured

// Drawn towards its blur of 3 x 3 (0), left as it is (1), or drawn away from it.
PendingPass sharpness_pass(double factor, Arithmetic arithmetic);

}  // namespace headrace
