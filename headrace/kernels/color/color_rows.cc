// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/color/color_rows.h"

#include <cstddef>

#include "headrace/kernels/color/color_rows_levels.h"
#include "headrace/kernels/color/planar_color.h"
#include "headrace/kernels/dispatch.h"

namespace headrace {
namespace {

void luma_from_rgb(const uint8_t* const rgb[3], int count, uint8_t* gray) {
  for (int i = 0; i < count; ++i) {
    gray[i] = static_cast<uint8_t>(luma_of(rgb[0][i], rgb[1][i], rgb[2][i]));
  }
}

void saturate(const uint8_t* const rgb[3], int count, float factor, float rest,
              uint8_t* const out[3]) {
  for (int i = 0; i < count; ++i) {
    const float gray = std::floor(luma_of(rgb[0][i], rgb[1][i], rgb[2][i]));
    for (int c = 0; c < 3; ++c) out[c][i] = blend_as_torch(rgb[c][i], gray, factor, rest);
  }
}

void turn_hue(const uint8_t* const rgb[3], int count, float share, uint8_t* const out[3]) {
  for (int i = 0; i < count; ++i) {
    const Rgb turned = turned_rgb(rgb[0][i] * kUnit, rgb[1][i] * kUnit, rgb[2][i] * kUnit, share);
    for (int c = 0; c < 3; ++c) out[c][i] = static_cast<uint8_t>(turned[c] * kBytes);
  }
}

constexpr ColorRowKernels kScalar{luma_from_rgb, saturate, turn_hue};

const ColorRowKernels& kernels() {
  static const ByLevel<const ColorRowKernels*> by_level{
      &kScalar, color_row_kernels_avx2(), color_row_kernels_avx512(), color_row_kernels_neon()};
  return *by_level.in_force();
}

}  // namespace

Rgb turned_rgb(float r, float g, float b, float share) {
  const auto unit = [](float value) { return std::clamp(value, 0.0f, 1.0f); };
  const float most = std::max({r, g, b}), least = std::min({r, g, b});
  const bool is_gray = most == least;
  const float range = most - least, divisor = is_gray ? 1.0f : range;
  const float saturation = range / (is_gray ? 1.0f : most);
  const float from_r = (most - r) / divisor, from_g = (most - g) / divisor,
              from_b = (most - b) / divisor;
  float hue = from_g + 4.0f - from_r;
  if (most == g) hue = from_r + 2.0f - from_b;
  if (most == r) hue = from_b - from_g;
  hue = hue * kSixth + 1.0f;
  hue -= std::trunc(hue);
  hue += share;
  hue -= std::trunc(hue);
  if (hue < 0) hue += 1.0f;
  const float sixths = hue * 6.0f, sector = std::floor(sixths), within = sixths - sector;
  const float part = saturation * within, rest = 1.0f - saturation;
  const float p = unit(rest * most), q = unit((1.0f - part) * most), t = unit((part + rest) * most);
  // What is infinite has no hue; torch converts the NaN to the smallest int32.
  switch (std::isfinite(sector) ? static_cast<int>(sector) % 6 : 4) {
    case 0:
      return {most, t, p};
    case 1:
      return {q, most, p};
    case 2:
      return {p, most, t};
    case 3:
      return {p, q, most};
    case 4:
      return {t, p, most};
    default:
      return {most, p, q};
  }
}

void luma_from_rgb_rows(const uint8_t* const rgb[3], int count, uint8_t* gray) {
  kernels().luma_from_rgb(rgb, count, gray);
}

void saturate_rows(const uint8_t* const rgb[3], int count, float factor, float rest,
                   uint8_t* const out[3]) {
  kernels().saturate(rgb, count, factor, rest, out);
}

void saturate_rows_as_pillow(const uint8_t* const rgb[3], int count, const PillowBlend& blend,
                             uint8_t* const out[3]) {
  constexpr int kPart = 1024;
  uint8_t gray[kPart + 63];
  for (int first = 0; first < count; first += kPart) {
    const int part = std::min(kPart, count - first);
    const uint8_t* const from[] = {rgb[0] + first, rgb[1] + first, rgb[2] + first};
    uint8_t* const to[] = {out[0] + first, out[1] + first, out[2] + first};
    gray_from_rgb_rows(from, part, gray);
    for (int c = 0; c < 3; ++c) blend_row_as_pillow(from[c], gray, part, blend, to[c]);
  }
}

void turn_hue_rows(const uint8_t* const rgb[3], int count, float share, uint8_t* const out[3]) {
  kernels().turn_hue(rgb, count, share, out);
}

}  // namespace headrace
