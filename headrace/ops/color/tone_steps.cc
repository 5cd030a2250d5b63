// SPDX-License-Identifier: Apache-2.0
#include "headrace/ops/color/tone_steps.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "headrace/kernels/filters/sharpen_rows.h"
#include "headrace/ops/color/color_floats.h"

namespace headrace {
namespace {

// Of a channel with these values at its ends; one of a single value stays.
struct Stretch {
  int least, most;
  Arithmetic arithmetic;

  uint8_t of(int value) const {
    if (least == most) return static_cast<uint8_t>(value);
    if (arithmetic == Arithmetic::kPillow) {
      const double scale = 255.0 / (most - least), offset = -least * scale;
      return static_cast<uint8_t>(std::clamp(std::trunc(value * scale + offset), 0.0, 255.0));
    }
    const float unit = static_cast<float>(most - least) * static_cast<float>(1.0 / 255);
    const float stretched = static_cast<float>(value - least) / unit;
    return static_cast<uint8_t>(std::clamp(stretched, 0.0f, 255.0f));
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

// Pillow's scheme: pixels below a value, in steps of a 255th of all but those of the largest.
void equalize(const Histogram& counts, std::array<uint8_t, 256>& table) {
  std::iota(table.begin(), table.end(), uint8_t{0});
  const int64_t pixels = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  const auto largest =
      std::find_if(counts.rbegin(), counts.rend(), [](int64_t n) { return n > 0; });
  if (largest == counts.rend()) return;
  const int64_t step = (pixels - *largest) / 255;
  if (step == 0) return;
  int64_t below = step / 2;
  for (size_t value = 0; value < table.size(); ++value) {
    table[value] = static_cast<uint8_t>(std::min<int64_t>(below / step, 255));
    below += counts[value];
  }
}

// The border stays, as in both libraries.
template <class SharpenRow>
void sharpen_plane(const uint8_t* in, int width, int height, uint8_t* out, SharpenRow&& sharpen) {
  const auto bytes = static_cast<size_t>(width);
  for (int y = 0; y < height; ++y, in += width, out += width) {
    if (y == 0 || y == height - 1 || width < 3) {
      std::memcpy(out, in, bytes);
      continue;
    }
    sharpen(ThreeRows{in - width, in, in + width}, out);  // and what follows, which comes next
    out[0] = in[0];
    out[width - 1] = in[width - 1];
  }
}

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

PixelStep equalize_step(const Picture& picture) {
  ColorTable table;
  for (int c = 0; c < std::min(picture.channels, 3); ++c) {
    equalize(histogram_of(picture, c), table.of[size_t(c)]);
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

}  // namespace headrace
