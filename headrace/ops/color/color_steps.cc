// SPDX-License-Identifier: Apache-2.0
#include "headrace/ops/color/color_steps.h"

#include <algorithm>
#include <cstring>

#include "headrace/kernels/color/color_rows.h"
#include "headrace/kernels/color/planar_color.h"
#include "headrace/ops/color/color_floats.h"

namespace headrace {
namespace {

// Gray images are unchanged, as in both libraries.
int as_many(const PixelStep&, int in) { return in == 1 || in == 3 ? in : 0; }

template <void (*of_rgb)(const PixelStep& step, const uint8_t* const in[3], int count,
                         uint8_t* const out[3])>
void colors(const PixelStep& step, const uint8_t* const in[], int channels, int count,
            uint8_t* const out[]) {
  if (channels == 3) return of_rgb(step, in, count, out);
  std::memcpy(out[0], in[0], count);
}

void adjust_saturation(const PixelStep& step, const uint8_t* const in[3], int count,
                       uint8_t* const out[3]) {
  adjust_saturation_rows(in, count, step.values[0], step.values[1], out);
}
void saturate_as_pillow(const PixelStep& step, const uint8_t* const in[3], int count,
                        uint8_t* const out[3]) {
  const float factor = step.values[0], slope = step.values[1], offset = step.values[2];
  saturate_rows_as_pillow(in, count,
                          {factor, static_cast<int32_t>(slope), static_cast<int32_t>(offset)}, out);
}
void shift_hue(const PixelStep& step, const uint8_t* const in[3], int count,
               uint8_t* const out[3]) {
  shift_hue_rows(in, count, step.values[0], out);
}
void shift_hue_as_pillow(const PixelStep& step, const uint8_t* const in[3], int count,
                         uint8_t* const out[3]) {
  shift_hue_rows_as_pillow(in, count, static_cast<int>(step.values[0]), out);
}

constexpr PixelFunction kSaturation{as_many, colors<adjust_saturation>, saturate_floats,
                                    PixelCode::kSaturation};
constexpr PixelFunction kPillowSaturation{as_many, colors<saturate_as_pillow>, nullptr,
                                          PixelCode::kPillowSaturation};
constexpr PixelFunction kHue{as_many, colors<shift_hue>, shift_hue_floats, PixelCode::kHue};
constexpr PixelFunction kBrightness{table_channels, look_up_bytes, brighten_floats};
constexpr PixelFunction kContrast{table_channels, look_up_bytes, contrast_floats};
constexpr PixelFunction kPillowHue{as_many, colors<shift_hue_as_pillow>, nullptr,
                                   PixelCode::kPillowHue};

// Sum of each pixel's gray, as the given library computes it.
uint64_t sum_of_gray(const Picture& picture, Arithmetic arithmetic) {
  const int64_t pixels = int64_t{picture.height} * picture.width;
  if (picture.channels == 1) return sum_of_row(picture.plane(0), pixels);
  const auto gray_of = arithmetic == Arithmetic::kPillow ? gray_from_rgb_rows : luma_from_rgb_rows;
  constexpr int64_t kPart = 4096;
  uint8_t gray[kPart + 63];
  uint64_t sum = 0;
  for (int64_t first = 0; first < pixels; first += kPart) {
    const int count = static_cast<int>(std::min(kPart, pixels - first));
    const uint8_t* const rgb[] = {picture.plane(0) + first, picture.plane(1) + first,
                                  picture.plane(2) + first};
    gray_of(rgb, count, gray);
    sum += sum_of_row(gray, count);
  }
  return sum;
}

// values[0]: number of output channels, all of them equal. A gray image keeps its values.
int gray_channels(const PixelStep& step, int in) {
  return in == 1 || in == 3 ? static_cast<int>(step.values[0]) : 0;
}

template <class Sample>
void replicate(const PixelStep& step, int count, Sample* const out[]) {
  for (int c = 1; c < static_cast<int>(step.values[0]); ++c) std::copy_n(out[0], count, out[c]);
}

template <void (*gray_from_rgb)(const uint8_t* const rgb[3], int count, uint8_t* gray)>
void gray_bytes(const PixelStep& step, const uint8_t* const in[], int channels, int count,
                uint8_t* const out[]) {
  if (channels == 3) {
    gray_from_rgb(in, count, out[0]);
  } else {
    std::memcpy(out[0], in[0], count);
  }
  replicate(step, count, out);
}

void gray_floats(const PixelStep& step, const float* const in[], int channels, int count,
                 float* const out[]) {
  for (int i = 0; i < count; ++i) {
    out[0][i] = channels == 3 ? luma_of(in[0][i], in[1][i], in[2][i]) : in[0][i];
  }
  replicate(step, count, out);
}

constexpr PixelFunction kGray{gray_channels, gray_bytes<luma_from_rgb_rows>, gray_floats,
                              PixelCode::kGray};
constexpr PixelFunction kPillowGray{gray_channels, gray_bytes<gray_from_rgb_rows>, nullptr,
                                    PixelCode::kPillowGray};

// values[c]: source of channel c.
template <class Sample>
void permute(const PixelStep& step, const Sample* const in[], int channels, int count,
             Sample* const out[]) {
  for (int c = 0; c < channels; ++c) {
    const int from = channels == 1 ? 0 : static_cast<int>(step.values[size_t(c)]);
    std::copy_n(in[from], count, out[c]);
  }
}

constexpr PixelFunction kPermutation{as_many, permute<uint8_t>, permute<float>,
                                     PixelCode::kPermutation};

float rest_of(double factor) { return static_cast<float>(1.0 - factor); }

PixelStep contrast_step(const Picture& picture, double factor, Arithmetic arithmetic) {
  if (picture.dtype == DType::kFloat32) {
    const auto own_share = static_cast<float>(factor);
    return {&kContrast, {own_share, rest_of(factor), mean_gray_of_floats(picture)}};
  }
  const auto sum = static_cast<double>(sum_of_gray(picture, arithmetic));
  const double pixels = static_cast<double>(picture.height) * picture.width;
  const auto own = static_cast<float>(factor);
  if (arithmetic == Arithmetic::kPillow) {
    const int mean = static_cast<int>(sum / pixels + 0.5);
    return table_step(same_table({.slope = own, .offset = mean * (1.0 - own)},
                                 [&](int value) { return blend_as_pillow(value, mean, own); }));
  }
  const float mean = static_cast<float>(sum) / static_cast<float>(pixels), rest = rest_of(factor);
  return table_step(same_table({.slope = own, .offset = double{mean} * rest}, [&](int value) {
    return blend_as_torch(static_cast<float>(value), mean, own, rest);
  }));
}

template <Arithmetic arithmetic>
Recipe blend_with_gray(const PendingPass& pass, const std::shared_ptr<const Picture>& pixels) {
  Recipe out(pixels);
  // torch's first rounding step
  (void)out.compute(contrast_step(*pixels, pass.numbers[0], arithmetic));
  return out;
}

constexpr PassFunction kContrastPass{blend_with_gray<Arithmetic::kTorch>, PassCode::kContrast,
                                     true};
constexpr PassFunction kPillowContrastPass{blend_with_gray<Arithmetic::kPillow>,
                                           PassCode::kPillowContrast, true};

}  // namespace

Param arithmetic_param() {
  return {.name = "arithmetic",
          .type = ParamType::kString,
          .doc =
              "\"torch\": torchvision's arithmetic on tensors, in float32; "
              "\"pillow\": Pillow's, as torchvision uses on Pillow images.",
          .fallback = std::string("torch"),
          .choices = {"torch", "pillow"}};
}

Arithmetic arithmetic_from(const Arguments& arguments) {
  return arguments.text("arithmetic") == "pillow" ? Arithmetic::kPillow : Arithmetic::kTorch;
}

PixelStep brightness_step(double factor) {
  const auto scale = static_cast<float>(factor);
  const auto brightened = [&](int value) {
    return std::clamp(static_cast<float>(value) * scale, 0.0f, 255.0f);
  };
  return table_step(same_table({.slope = scale}, brightened), kBrightness, {scale});
}

PendingPass contrast_pass(double factor, Arithmetic arithmetic) {
  const bool pillow = arithmetic == Arithmetic::kPillow;
  return {.function = pillow ? &kPillowContrastPass : &kContrastPass, .numbers = {factor}};
}

PixelStep any_color_step(Arithmetic arithmetic) { return saturation_step(1, arithmetic); }

PixelStep gray_step(int channels, Arithmetic arithmetic) {
  const bool pillow = arithmetic == Arithmetic::kPillow;
  return {pillow ? &kPillowGray : &kGray, {static_cast<float>(channels)}};
}

PixelStep saturation_step(double factor, Arithmetic arithmetic) {
  const auto own = static_cast<float>(factor);
  if (arithmetic == Arithmetic::kTorch) return {&kSaturation, {own, rest_of(factor), 0}};
  const PillowBlend blend = pillow_blend(own);  // integers that float32 holds exactly
  return {&kPillowSaturation, {own, float(blend.slope), float(blend.offset)}};
}

PixelStep hue_step(double share, Arithmetic arithmetic) {
  if (arithmetic == Arithmetic::kPillow) {
    return {&kPillowHue, {static_cast<float>(static_cast<int>(share * 255)), 0, 0}};
  }
  return {&kHue, {static_cast<float>(share), 0, 0}};
}

PixelStep permutation_step(Draws& draws) {
  const std::array<int, 3> order = draws.permutation<3>();
  return {&kPermutation, {float(order[0]), float(order[1]), float(order[2])}};
}

std::variant<PixelStep, PendingPass> adjustment_of(Adjustment adjustment, double factor,
                                                   Arithmetic arithmetic) {
  switch (adjustment) {
    case Adjustment::kBrightness:
      return brightness_step(factor);
    case Adjustment::kSaturation:
      return saturation_step(factor, arithmetic);
    case Adjustment::kHue:
      return hue_step(factor, arithmetic);
    case Adjustment::kContrast:
      break;
  }
  return contrast_pass(factor, arithmetic);
}

std::pair<int, int> extremes_of(const Picture& picture, int channel) {
  uint8_t least = 255, most = 0;
  const int64_t pixels = int64_t{picture.height} * picture.width;
  extend_by_row(picture.plane(channel), pixels, least, most);
  return {least, most};
}

Histogram histogram_of(const Picture& picture, int channel) {
  Histogram histogram{};
  count_row(picture.plane(channel), int64_t{picture.height} * picture.width, histogram.data());
  return histogram;
}

}  // namespace headrace
