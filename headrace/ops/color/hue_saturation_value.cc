// SPDX-License-Identifier: Apache-2.0
// HueSaturationValue and RandomHSV: OpenCV's 8-bit hue, saturation and value, shifted as in
// Albumentations, or scaled as in YOLO's training.
#include <array>
#include <cmath>
#include <cstring>
#include <string>

#include "headrace/base/registry.h"
#include "headrace/kernels/color/color_rows.h"
#include "headrace/ops/color/color_steps.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

int only_rgb(const PixelStep&, int in) { return in == 3 ? 3 : 0; }

// values: offsets for hue, saturation and value.
void shift_hsv(const PixelStep& step, const uint8_t* const in[], int, int count,
               uint8_t* const out[]) {
  change_hsv_rows(in, count,
                  {.hue_add = static_cast<int>(step.values[0]),
                   .saturation_add = step.values[1],
                   .value_add = step.values[2]},
                  out);
}
// values: offset for hue, and factors for saturation and value.
void scale_hsv(const PixelStep& step, const uint8_t* const in[], int, int count,
               uint8_t* const out[]) {
  change_hsv_rows(in, count,
                  {.hue_add = static_cast<int>(step.values[0]),
                   .saturation_gain = step.values[1],
                   .value_gain = step.values[2]},
                  out);
}

constexpr PixelFunction kShiftHsv{only_rgb, shift_hsv, nullptr};
constexpr PixelFunction kScaleHsv{only_rgb, scale_hsv, nullptr};

// Hue is in units of two degrees, from 0 to 179: truncating hue + shift is the same as adding the
// shift's floor.
float hue_of(double shift) {
  const double turned = std::fmod(std::floor(shift), 180.0);
  return static_cast<float>(turned < 0 ? turned + 180 : turned);
}

using Limit = std::array<double, 2>;

// x for [-x, x]; or (smallest, largest).
Limit limit_from(const Arguments& arguments, std::string_view name) {
  const std::vector<double>& given = arguments.numbers(name);
  const Limit limit = given.size() == 1 ? Limit{-given[0], given[0]} : Limit{given[0], given[1]};
  if (limit[0] > limit[1]) {
    raise_invalid_argument("HueSaturationValue",
                           std::string(name) +
                               " must be one number that is not negative, or (smallest, "
                               "largest)");
  }
  return limit;
}

class HueSaturationValue final : public PixelOp {
 public:
  HueSaturationValue(Limit hue, Limit saturation, Limit value, double p)
      : PixelOp("HueSaturationValue"), hue_(hue), saturation_(saturation), value_(value), p_(p) {}

  Result<void> apply(OpContext& context) const override {
    Draws& draws = context.draws;
    if (!draws.coin(p_)) return {};
    const float hue = hue_of(draws.uniform(hue_[0], hue_[1]));
    const auto saturation = static_cast<float>(draws.uniform(saturation_[0], saturation_[1]));
    const auto value = static_cast<float>(draws.uniform(value_[0], value_[1]));
    return compute_all(context, {&kShiftHsv, {hue, saturation, value}});
  }

 private:
  void plan_image(FieldState& image) const override { plan_step({&kShiftHsv}, image); }
  const Limit hue_, saturation_, value_;
  const double p_;
};

class RandomHSV final : public PixelOp {
 public:
  explicit RandomHSV(const std::array<double, 3>& gains) : PixelOp("RandomHSV"), gains_(gains) {}

  Result<void> apply(OpContext& context) const override {
    std::array<double, 3> draws;
    for (size_t i = 0; i < 3; ++i) draws[i] = context.draws.uniform(-gains_[i], gains_[i]);
    return compute_all(context, {&kScaleHsv,
                                 {hue_of(draws[0] * 180), static_cast<float>(1 + draws[1]),
                                  static_cast<float>(1 + draws[2])}});
  }

 private:
  void plan_image(FieldState& image) const override { plan_step({&kScaleHsv}, image); }
  const std::array<double, 3> gains_;
};

Param limit_param(std::string_view name, std::string_view doc, double fallback) {
  return {.name = name,
          .type = ParamType::kFloats,
          .doc = doc,
          .fallback = std::vector<double>{-fallback, fallback},
          .minimum = -1e4,
          .maximum = 1e4,
          .min_count = 1,
          .max_count = 2};
}

const OpRecord kHueSaturationValue{
    .name = "HueSaturationValue",
    .doc =
        "Shifts hue, saturation and value of an image at random, with probability p.\n\n"
        "Images of three channels, (3, H, W), uint8; shape and dtype are unchanged, and so are "
        "masks. H, S and V have 8 bits each, as in OpenCV: hue from 0 to 179, the others from 0 to "
        "255; so nine out of ten colors change slightly even without a shift. Gray pixels stay "
        "gray.",
    .page = {.section = "Color transforms", .step = "T.HueSaturationValue(40, 60, 40, p=1.0)"},
    .params = {limit_param("hue_shift_limit",
                           "x: a number from [-x, x] is added to the hue, modulo 180; or "
                           "(smallest, largest).",
                           20),
               limit_param("sat_shift_limit", "The same for saturation, clipped to 0 to 255.", 30),
               limit_param("val_shift_limit", "The same for value.", 20),
               probability_param("Probability of changing a record's images.")},
    .oracle =
        "OpenCV's 8-bit HSV by its definition, rounded as its scalar code rounds (its vector "
        "code truncates: at most 1 off); draws as Albumentations' HueSaturationValue in "
        "distribution",
    .example = {{"hue_shift_limit", 30.0}, {"p", 0.9}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<HueSaturationValue>(
          limit_from(arguments, "hue_shift_limit"), limit_from(arguments, "sat_shift_limit"),
          limit_from(arguments, "val_shift_limit"), arguments.number("p"));
    }};
const Register<OpRecord> registered_hue_saturation_value(kHueSaturationValue);

Param gain_param(std::string_view name, std::string_view doc, double fallback) {
  return {.name = name,
          .type = ParamType::kFloat,
          .doc = doc,
          .fallback = fallback,
          .minimum = 0,
          .maximum = 1};
}

const OpRecord kRandomHSV{
    .name = "RandomHSV",
    .doc =
        "Rotates the hue and scales saturation and value of an image at random, as in YOLO "
        "training.\n\n"
        "Images of three channels, (3, H, W), uint8; shape and dtype are unchanged, and so are "
        "masks. HSV is OpenCV's, as in HueSaturationValue. Gray pixels stay gray.",
    .page = {.section = "Color transforms", .step = "T.RandomHSV(0.1, 0.7, 0.4)"},
    .params = {gain_param("hgain", "The hue is rotated by a fraction of the circle from [-x, x].",
                          0.015),
               gain_param("sgain", "Saturation is multiplied by a factor from [1 - x, 1 + x].",
                          0.7),
               gain_param("vgain", "The same for value.", 0.4)},
    .oracle =
        "OpenCV's 8-bit HSV by its definition, rounded as its scalar code rounds (its vector "
        "code truncates: at most 1 off); draws as Ultralytics' RandomHSV in distribution",
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<RandomHSV>(std::array<double, 3>{
          arguments.number("hgain"), arguments.number("sgain"), arguments.number("vgain")});
    }};
const Register<OpRecord> registered_random_hsv(kRandomHSV);

}  // namespace
}  // namespace headrace
