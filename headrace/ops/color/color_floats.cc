// SPDX-License-Identifier: Apache-2.0
#include "headrace/ops/color/color_floats.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "headrace/kernels/color/color_rows.h"

namespace headrace {
namespace {

// Like torch's clamp: NaN stays NaN.
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

// The 3 x 3 blur.
float blur_at(const float* value, int width) {
  constexpr auto kAround = static_cast<float>(1.0 / 13), kMiddle = static_cast<float>(5.0 / 13);
  float sum = 0;
  for (int y = -1; y <= 1; ++y) {
    for (int x = -1; x <= 1; ++x) {
      const float weight = x == 0 && y == 0 ? kMiddle : kAround;
      sum = std::fma(value[ptrdiff_t{y} * width + x], weight, sum);
    }
  }
  return sum;
}

// The byte version is in kernels/color/color_rows.h; bytes can neither exceed white nor be NaN.
Rgb shifted_hue(float r, float g, float b, float share) {
  if (std::isnan(r) || std::isnan(g) || std::isnan(b)) {
    constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
    return {kNaN, kNaN, kNaN};
  }
  return hue_shifted(r, g, b, share);
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

void shift_hue_floats(const PixelStep& step, const float* const in[], int channels, int count,
                      float* const out[]) {
  if (channels == 1) {
    std::copy_n(in[0], count, out[0]);
    return;
  }
  for (int i = 0; i < count; ++i) {
    const Rgb turned = shifted_hue(in[0][i], in[1][i], in[2][i], step.values[0]);
    for (int c = 0; c < 3; ++c) out[c][i] = turned[c];
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

Picture bytes_of_floats(const Picture& picture) {
  Picture out(picture.channels, picture.height, picture.width, DType::kUInt8);
  for (int c = 0; c < picture.channels; ++c) {
    uint8_t* to = out.plane(c);
    for (const float value : floats_of(picture, c)) {
      *to++ = static_cast<uint8_t>(std::isnan(value) ? 0.0f : unit_of(value) * 255.999f);
    }
  }
  return out;
}

float float_of_byte(uint8_t value) { return static_cast<float>(value) * (1.0f / 255); }

Picture sharpened_floats(const Picture& picture, float rest) {
  Picture out(picture.channels, picture.height, picture.width, DType::kFloat32);
  const int width = picture.width, height = picture.height;
  const bool has_inside = width > 2 && height > 2;
  for (int c = 0; c < picture.channels; ++c) {
    const float* const in = floats_of(picture, c).data();
    auto* const to = reinterpret_cast<float*>(out.plane(c));
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const ptrdiff_t at = ptrdiff_t{y} * width + x;
        const bool border = y == 0 || x == 0 || y == height - 1 || x == width - 1;
        to[at] = border ? in[at] : std::fma(blur_at(in + at, width) - in[at], rest, in[at]);
        if (has_inside) to[at] = unit_of(to[at]);
      }
    }
  }
  return out;
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
