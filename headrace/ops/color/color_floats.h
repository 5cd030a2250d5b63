// SPDX-License-Identifier: Apache-2.0
// Colors and tones of pictures of float32, whose white is 1: rows as torchvision v2 computes them
// on tensors of floats, operation for operation. Loops are plain: who cares for speed has them on
// bytes.
#pragma once

#include <array>

#include "headrace/image/picture.h"
#include "headrace/image/pixel_steps.h"

namespace headrace {

// PixelFunction::floats of pictures of one or three channels. `values`, in this order: factor;
// factor, float(1 - factor), mean gray; factor, float(1 - factor); share of the circle; none;
// levels; threshold; those of stretch_of_floats(); power, gain.
using FloatRows = void(const PixelStep& step, const float* const in[], int channels, int count,
                       float* const out[]);
FloatRows brighten_floats, contrast_floats, saturate_floats, turn_hue_floats, invert_floats,
    posterize_floats, solarize_floats, stretch_floats, raise_floats;

// Mean gray of all pixels, added up in float64: torch adds in float32, in an order of its own.
float mean_gray_of_floats(const Picture& picture);
// By tables of 8 bits, as torchvision equalizes floats: what lies beyond 0 to 1 counts as 0 or 1,
// and what is not a number as 0 (torch leaves both to the machine).
Picture bytes_of_floats(const Picture& picture);
float float_of_byte(uint8_t value);
// Drawn towards its blur of 3 x 3 by `rest`, and cut off to 0 to 1. torch adds the nine up in an
// order of its own, so that values differ by some units of the last place.
Picture sharpened_floats(const Picture& picture, float rest);
// For each channel the subtrahend, then the divisor; NaN where there is a NaN.
std::array<float, 6> stretch_of_floats(const Picture& picture);

}  // namespace headrace
