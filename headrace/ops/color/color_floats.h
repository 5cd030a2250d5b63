// SPDX-License-Identifier: Apache-2.0
// Colors and tones of rows of float32 pictures (white is 1), operation for operation as in
// torchvision v2 on float tensors. The loops are plain, because pictures are bytes where speed
// matters.
#pragma once

#include <array>

#include "headrace/image/picture.h"
#include "headrace/image/pixel_steps.h"

namespace headrace {

// PixelFunction::floats for pictures of one or three channels. `values`, in this order: factor;
// factor, float(1 - factor), mean gray; factor, float(1 - factor); fraction of the circle; none;
// levels; threshold; those of stretch_of_floats(); power, gain.
using FloatRows = void(const PixelStep& step, const float* const in[], int channels, int count,
                       float* const out[]);
FloatRows brighten_floats, contrast_floats, saturate_floats, shift_hue_floats, invert_floats,
    posterize_floats, solarize_floats, stretch_floats, raise_floats;

// Mean gray of all pixels, summed in float64; torch sums in float32, in an unspecified order.
float mean_gray_of_floats(const Picture& picture);
// Uses 8-bit tables, as torchvision equalizes floats: values outside 0 to 1 are clamped and NaN
// counts as 0 (in torch, both depend on the machine).
Picture bytes_of_floats(const Picture& picture);
float float_of_byte(uint8_t value);
// Blended with its 3 x 3 blur, weighted by `rest`, and clamped to 0 to 1. torch adds the nine
// values in an unspecified order, so results may differ by a few ulps.
Picture sharpened_floats(const Picture& picture, float rest);
// For each channel the subtrahend, then the divisor; NaN if the channel has a NaN.
std::array<float, 6> stretch_of_floats(const Picture& picture);

}  // namespace headrace
