// SPDX-License-Identifier: Apache-2.0
// Brightness, contrast, saturation and hue as pixel steps, in the arithmetic of either library:
// shared by ColorJitter, RandomPhotometricDistort, the single adjustments and the policies.
//
// torchvision computes colors of tensors in float32, of Pillow's pictures in Pillow's integers.
// Values are cut off to 8 bits between two steps, as in both.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <variant>

#include "headrace/image/arithmetic.h"
#include "headrace/image/picture.h"
#include "headrace/image/pixel_steps.h"
#include "headrace/ops/pixel_op.h"

namespace headrace {

// The parameter `arithmetic` of color operators.
Param arithmetic_param();
Arithmetic arithmetic_from(const Arguments& arguments);

// `value` -> the table of each channel: value(channel, 0 to 255) gives 0 to 255.
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

// The same of all channels: value(0 to 255) gives 0 to 255.
template <class Value>
ColorTable same_table(const TableGuess& guess, Value&& value) {
  ColorTable table;
  for (int v = 0; v < 256; ++v) table.of[0][size_t(v)] = static_cast<uint8_t>(value(v));
  table.of[1] = table.of[2] = table.of[0];
  table.guess.fill(guess);
  return table;
}

// Steps of torch's arithmetic have float32's too (color_floats.h); Pillow has none.

// One for the plan of a step that does any of them: what it takes, they take.
PixelStep any_color_step(Arithmetic arithmetic);
// So many equal channels of gray.
PixelStep gray_step(int channels, Arithmetic arithmetic);
// Both libraries' are the same.
PixelStep brightness_step(double factor);
// The picture is measured: its mean gray is what all values are drawn towards.
PendingPass contrast_pass(double factor, Arithmetic arithmetic);
PixelStep saturation_step(double factor, Arithmetic arithmetic);
// -0.5 to 0.5 of the circle.
PixelStep hue_step(double share, Arithmetic arithmetic);

// An image's channels in a random order; a permutation of three is drawn, of which a gray image has
// nothing.
PixelStep permutation_step(Draws& draws);

enum class Adjustment : uint8_t { kBrightness, kContrast, kSaturation, kHue };

// The adjustment of an image: a step, or a pass that measures it first.
std::variant<PixelStep, PendingPass> adjustment_of(Adjustment adjustment, double factor,
                                                   Arithmetic arithmetic);

using Histogram = std::array<int64_t, 256>;
// Smallest and largest value of a channel.
std::pair<int, int> extremes_of(const Picture& picture, int channel);
Histogram histogram_of(const Picture& picture, int channel);

}  // namespace headrace
