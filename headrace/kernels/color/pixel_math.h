// SPDX-License-Identifier: Apache-2.0
// Colors and tones, pixel by pixel, operation for operation like the reference library. This is the
// scalar form of the CPU's row functions, and the code of kernels on GPUs; both are compared with
// the same reference. Nothing is fused except explicit fmaf.
#pragma once

#include <cmath>
#include <cstdint>

#include "headrace/base/host_device_function.h"
#include "headrace/kernels/color/ycc_constants.h"

namespace headrace {

// torchvision's gray weights; they add up to 0.9999.
inline constexpr float kLumaRed = 0.2989f, kLumaGreen = 0.587f, kLumaBlue = 0.114f;
// torchvision's HSV constants in float32: from 8 bits to the range 0 to 1, and back to just below
// 256.
inline constexpr float kUnitOfByte = static_cast<float>(1.0 / 255);
inline constexpr float kBytesOfUnit = static_cast<float>(255 + 1.0 - 1e-3);
inline constexpr float kSixth = static_cast<float>(1.0 / 6);

HEADRACE_HD inline float clamped(float value, float least, float most) {
  return value < least ? least : value > most ? most : value;
}
// Truncated, and clamped to 0 to 255; NaN gives 0.
HEADRACE_HD inline uint8_t byte_from(float value) {
  return static_cast<uint8_t>(value > 0 ? (value < 255 ? value : 255.0f) : 0.0f);
}

// Gray as torchvision v2 computes it on tensors: the weighted sum in float32, with torch's fused
// multiply-adds. The result is truncated afterwards.
HEADRACE_HD inline float luma_of(float red, float green, float blue) {
  return fmaf(blue, kLumaBlue, fmaf(green, kLumaGreen, red * kLumaRed));
}
// Gray as Pillow computes it.
HEADRACE_HD inline uint8_t gray_as_pillow(int red, int green, int blue) {
  const int sum = red * kGrayRed + green * 2 * kGrayHalfGreen + blue * kGrayBlue;
  return static_cast<uint8_t>((sum + kGrayRound) >> 16);
}

// Blends, including brightness and contrast: value * factor + other * (1 - factor), truncated and
// clamped to 0 to 255. This is torch's arithmetic; `rest`: float(1.0 - factor).
HEADRACE_HD inline uint8_t blend_as_torch(float value, float other, float factor, float rest) {
  return byte_from(fmaf(other, rest, value * factor));
}
// The same in Pillow's arithmetic, also in float32.
HEADRACE_HD inline uint8_t blend_as_pillow(int value, int other, float factor) {
  return byte_from(static_cast<float>(other) + factor * static_cast<float>(value - other));
}

struct Rgb {
  float of[3];
  HEADRACE_HD float operator[](int channel) const { return of[channel]; }
};

// HSV -> RGB in one of the six sectors of hue: `most` is the value; p, q and t have their usual
// meaning.
template <class Color, class Value>
HEADRACE_HD Color in_sector(int sector, Value most, Value p, Value q, Value t) {
  switch (sector) {
    case 0:
      return {{most, t, p}};
    case 1:
      return {{q, most, p}};
    case 2:
      return {{p, most, t}};
    case 3:
      return {{p, q, most}};
    case 4:
      return {{t, p, most}};
    default:
      return {{most, p, q}};
  }
}

// torchvision's _rgb_to_hsv, a rotation of the hue by a fraction of the circle, and _hsv_to_rgb.
HEADRACE_HD inline Rgb hue_shifted(float r, float g, float b, float share) {
  const float max_gb = g > b ? g : b, min_gb = g < b ? g : b;
  const float most = r > max_gb ? r : max_gb, least = r < min_gb ? r : min_gb;
  const bool is_gray = most == least;
  const float range = most - least, divisor = is_gray ? 1.0f : range;
  const float saturation = range / (is_gray ? 1.0f : most);
  const float from_r = (most - r) / divisor, from_g = (most - g) / divisor,
              from_b = (most - b) / divisor;
  float hue = from_g + 4.0f - from_r;
  if (most == g) hue = from_r + 2.0f - from_b;
  if (most == r) hue = from_b - from_g;
  hue = hue * kSixth + 1.0f;
  hue -= truncf(hue);
  hue += share;
  hue -= truncf(hue);
  if (hue < 0) hue += 1.0f;
  const float sixths = hue * 6.0f, sector = floorf(sixths), within = sixths - sector;
  const float part = saturation * within, rest = 1.0f - saturation;
  const float p = clamped(rest * most, 0, 1), q = clamped((1.0f - part) * most, 0, 1),
              t = clamped((part + rest) * most, 0, 1);
  // An infinite value has no hue; torch converts the NaN to the smallest int32.
  const bool is_finite = sector - sector == 0.0f;
  return in_sector<Rgb>(is_finite ? static_cast<int>(sector) % 6 : 4, most, p, q, t);
}

// An 8-bit RGB pixel.
struct ByteRgb {
  uint8_t of[3];
};
// The same for bytes.
HEADRACE_HD inline ByteRgb hue_shifted_bytes(uint8_t r, uint8_t g, uint8_t b, float share) {
  const Rgb turned =
      hue_shifted(float(r) * kUnitOfByte, float(g) * kUnitOfByte, float(b) * kUnitOfByte, share);
  return {{static_cast<uint8_t>(turned[0] * kBytesOfUnit),
           static_cast<uint8_t>(turned[1] * kBytesOfUnit),
           static_cast<uint8_t>(turned[2] * kBytesOfUnit)}};
}

// Pillow's rgb2hsv_row and hsv2rgb, via 8-bit HSV, with the hue rotated by `hues` of 256: their mix
// of float and double affects the result. For products of these widths, its round() is the same as
// adding 0.5.
HEADRACE_HD inline ByteRgb hue_shifted_as_pillow(int r, int g, int b, int hues) {
  const int max_gb = g > b ? g : b, min_gb = g < b ? g : b;
  const int most = r > max_gb ? r : max_gb, least = r < min_gb ? r : min_gb;
  const auto value = static_cast<uint8_t>(most);
  if (most == least) return {{value, value, value}};
  const float range = static_cast<float>(most - least);
  const float from_r = static_cast<float>(most - r) / range,
              from_g = static_cast<float>(most - g) / range,
              from_b = static_cast<float>(most - b) / range;
  float hue = static_cast<float>(4.0 + from_g - from_r);
  if (g == most) hue = static_cast<float>(2.0 + from_r - from_b);
  if (r == most) hue = from_b - from_g;
  const double turns = hue / 6.0 + 1.0;
  hue = static_cast<float>(turns - trunc(turns));
  const int to = (static_cast<int>(hue * 255.0) + hues) & 255;
  const float share = range / static_cast<float>(most);
  const int saturation = static_cast<int>(share * 255.0);
  if (saturation == 0) return {{value, value, value}};
  const float weight = static_cast<float>(static_cast<float>(saturation) / 255.0);
  const double sixths = static_cast<float>(to) * 6.0 / 255.0;
  const int sector = static_cast<int>(sixths);
  const float within = static_cast<float>(sixths - sector);
  const double bright = static_cast<float>(most), wide = weight;
  const auto p = static_cast<uint8_t>(bright * (1.0 - wide) + 0.5),
             q = static_cast<uint8_t>(bright * (1.0 - static_cast<double>(weight * within)) + 0.5),
             t = static_cast<uint8_t>(bright * (1.0 - wide * (1.0 - within)) + 0.5);
  return in_sector<ByteRgb>(sector % 6, value, p, q, t);
}

// Autocontrast: stretches a channel's range, least to most, to 0 to 255; a channel with a single
// value is unchanged. This is torchvision's arithmetic on tensors.
HEADRACE_HD inline uint8_t stretch_as_torch(int value, int least, int most) {
  if (least == most) return static_cast<uint8_t>(value);
  const float unit = static_cast<float>(most - least) * kUnitOfByte;
  return byte_from(static_cast<float>(value - least) / unit);
}
// The same in Pillow's arithmetic.
HEADRACE_HD inline uint8_t stretch_as_pillow(int value, int least, int most) {
  if (least == most) return static_cast<uint8_t>(value);
  const double scale = 255.0 / (most - least), offset = -least * scale;
  const double stretched = value * scale + offset;
  return static_cast<uint8_t>(stretched > 0 ? (stretched < 255 ? stretched : 255.0) : 0.0);
}

// Pillow's and torchvision's equalization: maps a value to the number of pixels below it, in steps
// of 1/255 of all pixels except those with the largest value. `counts` is the histogram. Writes
// entries `begin` to `end` of the channel's table.
template <class Count>
HEADRACE_HD inline void equalize(const Count* counts, int begin, int end, uint8_t* table) {
  int64_t pixels = 0;
  int largest = -1;
  for (int value = 0; value < 256; ++value) {
    pixels += counts[value];
    if (counts[value] > 0) largest = value;
  }
  const int64_t step = largest < 0 ? 0 : (pixels - counts[largest]) / 255;
  int64_t below = step / 2;
  for (int value = 0; value < begin; ++value) below += counts[value];
  for (int value = begin; value < end; ++value) {
    const int64_t place = step == 0 ? value : below / step;
    table[value] = static_cast<uint8_t>(place < 255 ? place : 255);
    below += counts[value];
  }
}

}  // namespace headrace
