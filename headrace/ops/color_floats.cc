// SPDX-License-Identifier: Apache-2.0
#include "headrace/ops/color_floats.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "headrace/kernels/color_rows.h"

namespace headrace {
namespace {

// As torch's clamp: a NaN stays one.
float unit_of(float value) { return std::clamp(value, 0.0f, 1.0f); }

float blended(float value, float other, float own, float rest) {
  return unit_of(std::fma(other, rest, value * own));
}

template <class Value>
void each_float(const float* const in[], int channels, int count, float* const out[],
                Value&& value) {
  for (int c = 0; c < channels; ++c) {
    for (int i = 0; i < count; ++i) out[c][i] = value(in[c][i], c);
  }
}

std::span<const float> floats_of(const Picture& picture, int channel) {
  return {reinterpret_cast<const float*>(picture.plane(channel)),
          size_t(picture.height) * size_t(picture.width)};
}

struct Turned {
  float red, green, blue;
};

// torchvision's _rgb_to_hsv, its hue turned, and _hsv_to_rgb; bytes have the same in
// kernels/color_rows.cc, where no value can be beyond white or none at all.
Turned turned_hue(float r, float g, float b, float share) {
  if (std::isnan(r) || std::isnan(g) || std::isnan(b)) {
    constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
    return {kNaN, kNaN, kNaN};
  }
  constexpr auto kSixthOfCircle = static_cast<float>(1.0 / 6);
  const float most = std::max({r, g, b}), least = std::min({r, g, b});
  const bool is_gray = most == least;
  const float range = most - least, divisor = is_gray ? 1.0f : range;
  const float saturation = range / (is_gray ? 1.0f : most);
  const float from_r = (most - r) / divisor, from_g = (most - g) / divisor,
              from_b = (most - b) / divisor;
  float hue = from_g + 4.0f - from_r;
  if (most == g) hue = from_r + 2.0f - from_b;
  if (most == r) hue = from_b - from_g;
  hue = hue * kSixthOfCircle + 1.0f;
  hue -= std::trunc(hue);
  hue += share;
  hue -= std::trunc(hue);
  if (hue < 0) hue += 1.0f;
  const float sixths = hue * 6.0f, sector = std::floor(sixths), within = sixths - sector;
  const float part = saturation * within, rest = 1.0f - saturation;
  const float p = unit_of(rest * most), q = unit_of((1.0f - part) * most),
              t = unit_of((part + rest) * most);
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

}  // namespace

void brighten_floats(const PixelStep& step, const float* const in[], int channels, int count,
                     float* const out[]) {
  const float factor = step.values[0];
  each_float(in, channels, count, out, [&](float value, int) { return unit_of(value * factor); });
}

void contrast_floats(const PixelStep& step, const float* const in[], int channels, int count,
                     float* const out[]) {
  const float own = step.values[0], rest = step.values[1], mean = step.values[2];
  each_float(in, channels, count, out,
             [&](float value, int) { return blended(value, mean, own, rest); });
}

void saturate_floats(const PixelStep& step, const float* const in[], int channels, int count,
                     float* const out[]) {
  const float own = step.values[0], rest = step.values[1];
  for (int i = 0; i < count; ++i) {
    if (channels == 1) {
      out[0][i] = in[0][i];
      continue;
    }
    const float gray = luma_of(in[0][i], in[1][i], in[2][i]);
    for (int c = 0; c < channels; ++c) out[c][i] = blended(in[c][i], gray, own, rest);
  }
}

void turn_hue_floats(const PixelStep& step, const float* const in[], int channels, int count,
                     float* const out[]) {
  if (channels == 1) {
    std::copy_n(in[0], count, out[0]);
    return;
  }
  for (int i = 0; i < count; ++i) {
    const Turned turned = turned_hue(in[0][i], in[1][i], in[2][i], step.values[0]);
    out[0][i] = turned.red;
    out[1][i] = turned.green;
    out[2][i] = turned.blue;
  }
}

void invert_floats(const PixelStep&, const float* const in[], int channels, int count,
                   float* const out[]) {
  each_float(in, channels, count, out, [](float value, int) { return 1.0f - value; });
}

void posterize_floats(const PixelStep& step, const float* const in[], int channels, int count,
                      float* const out[]) {
  const float levels = step.values[0];
  each_float(in, channels, count, out, [&](float value, int) {
    return std::clamp(std::floor(value * levels), 0.0f, levels - 1) * (1.0f / levels);
  });
}

void solarize_floats(const PixelStep& step, const float* const in[], int channels, int count,
                     float* const out[]) {
  const float threshold = step.values[0];
  each_float(in, channels, count, out,
             [&](float value, int) { return value >= threshold ? 1.0f - value : value; });
}

void stretch_floats(const PixelStep& step, const float* const in[], int channels, int count,
                    float* const out[]) {
  each_float(in, channels, count, out, [&](float value, int c) {
    return unit_of((value - step.values[size_t(c)]) / step.values[size_t(c) + 3]);
  });
}

void raise_floats(const PixelStep& step, const float* const in[], int channels, int count,
                  float* const out[]) {
  const double power = step.values[0];
  const float gain = step.values[1];
  each_float(in, channels, count, out, [&](float value, int) {
    const auto raised = static_cast<float>(std::pow(double{value}, power));
    return gain == 1 ? raised : unit_of(raised * gain);
  });
}

float mean_gray_of_floats(const Picture& picture) {
  double sum = 0;
  const auto first = floats_of(picture, 0);
  for (size_t i = 0; i < first.size(); ++i) {
    sum += picture.channels == 1
               ? first[i]
               : luma_of(first[i], floats_of(picture, 1)[i], floats_of(picture, 2)[i]);
  }
  return static_cast<float>(sum / double(first.size()));
}

std::array<float, 6> stretch_of_floats(const Picture& picture) {
  std::array<float, 6> out{0, 0, 0, 1, 1, 1};
  for (int c = 0; c < std::min(picture.channels, 3); ++c) {
    const auto values = floats_of(picture, c);
    float least = values[0], most = values[0];
    for (const float value : values) {
      if (!(value >= least)) least = value;
      if (!(value <= most)) most = value;
      if (std::isnan(value)) break;
    }
    if (least == most) continue;
    out[size_t(c)] = least;
    out[size_t(c) + 3] = most - least;
  }
  return out;
}

}  // namespace headrace
