// SPDX-License-Identifier: Apache-2.0
// Colours and tones of pictures of float32, whose white is 1: rows as torchvision v2 computes them
// on tensors of floats, operation for operation. Loops are plain: who cares for speed has them on
// bytes.
#pragma once

#include <array>

#include "headrace/image/picture.h"
#include "headrace/image/pixel_steps.h"

namespace headrace {

// PixelFunction::floats of pictures of one or three channels. `values`, in this order: factor;
// factor, float(1 - factor), mean grey; factor, float(1 - factor); share of the circle; none;
// levels; threshold; those of stretch_of_floats(); power, gain.
using FloatRows = void(const PixelStep& step, const float* const in[], int channels, int count,
                       float* const out[]);
FloatRows brighten_floats, contrast_floats, saturate_floats, turn_hue_floats, invert_floats,
    posterize_floats, solarize_floats, stretch_floats, raise_floats;

// Of the grey of all pixels, added up in float64: torch adds in float32, in an order of its own.
float mean_gray_of_floats(const Picture& picture);
// Of each channel what is subtracted, then what it is divided by; NaN where there is a NaN.
std::array<float, 6> stretch_of_floats(const Picture& picture);

}  // namespace headrace
