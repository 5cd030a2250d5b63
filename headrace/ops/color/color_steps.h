// SPDX-License-Identifier: Apache-2.0
// Brightness, contrast, saturation and hue as pixel steps, in the arithmetic of either library:
// shared by ColorJitter, RandomPhotometricDistort, the single adjustments and the policies.
//
// torchvision computes colors of tensors in float32, of Pillow images in Pillow's integers. Values
// are truncated to 8 bits between two steps, as in both.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <variant>

#include "headrace/image/picture.h"
#include "headrace/image/pixel_steps.h"
#include "headrace/ops/pixel_op.h"

namespace headrace {

// The parameter `arithmetic` of color operators.
Param arithmetic_param();
Arithmetic arithmetic_from(const Arguments& arguments);

// A table per channel from `value`: value(channel, 0 to 255) gives 0 to 255.
template <class Value>
ColorTable color_table(Value&& value) {
  ColorTable table;
  for (int c = 0; c < 3; ++c) {
    for (int v = 0; v < 256; ++v) {
      table.of[size_t(c)][size_t(v)] = static_cast<uint8_t>(value(c, v));
    }
  }
  return table;
}

// The same table for all channels: value(0 to 255) gives 0 to 255.
template <class Value>
ColorTable same_table(const TableGuess& guess, Value&& value) {
  ColorTable table;
  for (int v = 0; v < 256; ++v) table.of[0][size_t(v)] = static_cast<uint8_t>(value(v));
  table.of[1] = table.of[2] = table.of[0];
  table.guess.fill(guess);
  return table;
}

// Steps in torch's arithmetic also support float32 (color_floats.h); Pillow's do not.

// A step that represents any of them at plan time: all of them accept the same inputs.
PixelStep any_color_step(Arithmetic arithmetic);
// Gray, repeated in `channels` equal channels.
PixelStep gray_step(int channels, Arithmetic arithmetic);
// The same in both libraries.
PixelStep brightness_step(double factor);
// Measures the picture first: all values are blended with its mean gray.
PendingPass contrast_pass(double factor, Arithmetic arithmetic);
PixelStep saturation_step(double factor, Arithmetic arithmetic);
// `share`: rotation as a fraction of the circle, -0.5 to 0.5.
PixelStep hue_step(double share, Arithmetic arithmetic);

// An image's channels in random order. Always draws a permutation of three; a gray image ignores
// it.
PixelStep permutation_step(Draws& draws);

enum class Adjustment : uint8_t { kBrightness, kContrast, kSaturation, kHue };

// An image's adjustment: a step, or a pass that measures the image first.
std::variant<PixelStep, PendingPass> adjustment_of(Adjustment adjustment, double factor,
                                                   Arithmetic arithmetic);

using Histogram = std::array<int64_t, 256>;
// Smallest and largest value of a channel.
std::pair<int, int> extremes_of(const Picture& picture, int channel);
Histogram histogram_of(const Picture& picture, int channel);

// Tables of tones and sharpness, in the arithmetic of either library: shared by the operators of
// these names and the policies.

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
