// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>

#include "headrace/kernels/color/pixel_math.h"
#include "headrace/kernels/filters/filter_rows.h"
#include "headrace/ops/color/color_floats.h"
#include "headrace/ops/color/color_steps.h"

namespace headrace {
namespace {

// For a channel with these minimum and maximum values; a channel with a single value is unchanged.
struct Stretch {
  int least, most;
  Arithmetic arithmetic;

  uint8_t of(int value) const {
    return arithmetic == Arithmetic::kPillow ? stretch_as_pillow(value, least, most)
                                             : stretch_as_torch(value, least, most);
  }
  TableGuess guess() const {
    if (least == most) return {};
    const double slope = 255.0 / (most - least);
    return {.slope = slope, .offset = -least * slope};
  }
};

constexpr PixelFunction kInvert{table_channels, look_up_bytes, invert_floats};
constexpr PixelFunction kPosterize{table_channels, look_up_bytes, posterize_floats};
constexpr PixelFunction kSolarize{table_channels, look_up_bytes, solarize_floats};
constexpr PixelFunction kStretch{table_channels, look_up_bytes, stretch_floats};

// The border is unchanged, as in both libraries.
template <class SharpenRow>
void sharpen_plane(const uint8_t* in, int width, int height, uint8_t* out, SharpenRow&& sharpen) {
  const auto bytes = static_cast<size_t>(width);
  for (int y = 0; y < height; ++y, in += width, out += width) {
    if (y == 0 || y == height - 1 || width < 3) {
      std::memcpy(out, in, bytes);
      continue;
    }
    // Also writes past the row, which the next row overwrites.
    sharpen(ThreeRows{in - width, in, in + width}, out);
    out[0] = in[0];
    out[width - 1] = in[width - 1];
  }
}

PixelStep equalize_step(const Picture& picture) {
  ColorTable table;
  for (int c = 0; c < std::min(picture.channels, 3); ++c) {
    equalize(histogram_of(picture, c).data(), 0, 256, table.of[size_t(c)].data());
  }
  return table_step(table);
}

Picture equalized_floats(const Picture& picture) {
  const Picture bytes = bytes_of_floats(picture);
  const PixelStep step = equalize_step(bytes);
  Picture out(picture.channels, picture.height, picture.width, DType::kFloat32);
  for (int c = 0; c < picture.channels; ++c) {
    const uint8_t* const in = bytes.plane(c);
    auto* const to = reinterpret_cast<float*>(out.plane(c));
    for (size_t i = 0; i < bytes.plane_bytes(); ++i) {
      to[i] = float_of_byte(step.table->of[size_t(c)][in[i]]);
    }
  }
  return out;
}

PixelStep autocontrast_step(const Picture& picture, Arithmetic arithmetic) {
  if (picture.dtype == DType::kFloat32) return {&kStretch, stretch_of_floats(picture)};
  ColorTable table;
  for (int c = 0; c < std::min(picture.channels, 3); ++c) {
    const auto [least, most] = extremes_of(picture, c);
    const Stretch stretch{least, most, arithmetic};
    for (int value = 0; value < 256; ++value) {
      table.of[size_t(c)][size_t(value)] = stretch.of(value);
    }
    table.guess[size_t(c)] = stretch.guess();
  }
  return table_step(table);
}

Picture sharpened(const Picture& picture, double factor, Arithmetic arithmetic) {
  const auto rest = static_cast<float>(1.0 - factor);
  if (picture.dtype == DType::kFloat32) return sharpened_floats(picture, rest);
  Picture out(picture.channels, picture.height, picture.width, picture.dtype);
  const PillowBlend blend = pillow_blend(static_cast<float>(factor));
  const int width = picture.width;
  for (int c = 0; c < picture.channels; ++c) {
    sharpen_plane(picture.plane(c), width, picture.height, out.plane(c),
                  [&](const ThreeRows& rows, uint8_t* to) {
                    if (arithmetic == Arithmetic::kTorch) return sharpen_row(rows, width, rest, to);
                    sharpen_row_as_pillow(rows, width, blend, to);
                  });
  }
  return out;
}

using Pixels = std::shared_ptr<const Picture>;

Recipe with_step(const Pixels& pixels, const PixelStep& step) {
  Recipe out(pixels);
  (void)out.compute(step);  // a recipe accepts any first step
  return out;
}

Recipe equalized(const PendingPass&, const Pixels& pixels) {
  if (pixels->dtype != DType::kFloat32) return with_step(pixels, equalize_step(*pixels));
  return Recipe(std::make_shared<const Picture>(equalized_floats(*pixels)));
}
template <Arithmetic arithmetic>
Recipe stretched(const PendingPass&, const Pixels& pixels) {
  return with_step(pixels, autocontrast_step(*pixels, arithmetic));
}
template <Arithmetic arithmetic>
Recipe sharpened_by(const PendingPass& pass, const Pixels& pixels) {
  return Recipe(std::make_shared<const Picture>(sharpened(*pixels, pass.numbers[0], arithmetic)));
}

constexpr PassFunction kEqualizePass{equalized, PassCode::kEqualize, true};
constexpr PassFunction kStretchPass{stretched<Arithmetic::kTorch>, PassCode::kAutocontrast, true};
constexpr PassFunction kPillowStretchPass{stretched<Arithmetic::kPillow>,
                                          PassCode::kPillowAutocontrast, true};
constexpr PassFunction kSharpnessPass{sharpened_by<Arithmetic::kTorch>, PassCode::kSharpness, true};
constexpr PassFunction kPillowSharpnessPass{sharpened_by<Arithmetic::kPillow>,
                                            PassCode::kPillowSharpness, true};

}  // namespace

PixelStep invert_step() {
  return table_step(same_table({.threshold = 0}, [](int value) { return 255 - value; }), kInvert,
                    {});
}

PixelStep posterize_step(int bits) {
  const auto mask = static_cast<uint8_t>(0xff00 >> bits);
  return table_step(same_table({.mask = mask}, [&](int value) { return value & mask; }), kPosterize,
                    {static_cast<float>(1 << bits)});
}

PixelStep solarize_step(double threshold, Arithmetic arithmetic) {
  if (arithmetic == Arithmetic::kTorch) threshold = static_cast<float>(threshold);
  const TableGuess guess{.threshold =
                             static_cast<int>(std::ceil(std::clamp(threshold, 0.0, 256.0)))};
  return table_step(
      same_table(guess, [&](int value) { return value >= threshold ? 255 - value : value; }),
      kSolarize, {static_cast<float>(threshold)});
}

PendingPass equalize_pass() { return {.function = &kEqualizePass}; }

PendingPass autocontrast_pass(Arithmetic arithmetic) {
  return {.function = arithmetic == Arithmetic::kPillow ? &kPillowStretchPass : &kStretchPass};
}

PendingPass sharpness_pass(double factor, Arithmetic arithmetic) {
  const bool pillow = arithmetic == Arithmetic::kPillow;
  return {.function = pillow ? &kPillowSharpnessPass : &kSharpnessPass, .numbers = {factor}};
}

}  // namespace headrace
