// SPDX-License-Identifier: Apache-2.0
// ColorJitter: brightness, contrast, saturation and hue changed at random, in a random order.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>

#include "headrace/base/registry.h"
#include "headrace/ops/color/color_steps.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

constexpr std::string_view kJitter = "ColorJitter";

// Range of a factor; nullopt: no adjustment.
using JitterRange = std::optional<std::array<double, 2>>;

// torchvision's forms: x for [center - x, center + x], not below `least`; or (least, most).
JitterRange jitter_range(const Arguments& arguments, std::string_view name, double center,
                         double least, double most) {
  if (arguments.is_none(name)) return {};
  const std::vector<double>& given = arguments.numbers(name);
  const std::string whose(name);
  std::array<double, 2> range{given.front(), given.back()};
  if (given.size() == 1) {
    if (given[0] < 0)
      raise_invalid_argument(kJitter, whose + ": a single number must not be negative");
    range = {center - given[0], center + given[0]};
    if (center == 1) range[0] = std::max(range[0], 0.0);
  }
  if (range[0] > range[1] || range[0] < least || range[1] > most) {
    raise_invalid_argument(kJitter, whose + " must be one number, or (smallest, largest) between " +
                                        text_of(ParamValue(least)) + " and " +
                                        text_of(ParamValue(most)));
  }
  if (range[0] == center && range[1] == center) return {};
  return range;
}

class ColorJitter final : public PixelOp {
 public:
  ColorJitter(const std::array<JitterRange, 4>& ranges, Arithmetic arithmetic)
      : PixelOp(kJitter), ranges_(ranges), arithmetic_(arithmetic) {}

  Result<void> apply(OpContext& context) const override {
    const std::array<int, 4> order = context.draws.permutation<4>();
    std::array<double, 4> factors{};
    for (size_t i = 0; i < factors.size(); ++i) {
      if (ranges_[i]) factors[i] = context.draws.uniform((*ranges_[i])[0], (*ranges_[i])[1]);
    }
    for (const int field : context.fields) {
      for (const int which : order) {
        if (!ranges_[size_t(which)]) continue;
        const auto change =
            adjustment_of(static_cast<Adjustment>(which), factors[size_t(which)], arithmetic_);
        Result<void> done =
            std::visit([&](const auto& its) { return compute(context, field, its); }, change);
        if (!done) return done;
      }
    }
    return {};
  }
  bool measures() const override {
    return ranges_[static_cast<size_t>(Adjustment::kContrast)].has_value();
  }
  DevicePart device_part() const override {
    const auto has = [&](Adjustment which) {
      return ranges_[static_cast<size_t>(which)].has_value();
    };
    const bool mixes_channels = has(Adjustment::kSaturation) || has(Adjustment::kHue);
    return mixes_channels ? DevicePart::kNone : DevicePart::kTable;
  }

 private:
  void plan_image(FieldState& image) const override {
    plan_step(any_color_step(arithmetic_), image);
  }
  const std::array<JitterRange, 4> ranges_;  // in the order of Adjustment
  const Arithmetic arithmetic_;
};

Param jitter_param(std::string_view name, std::string_view doc) {
  return {.name = name, .type = ParamType::kFloats, .doc = doc, .min_count = 1, .max_count = 2};
}

const OpRecord kColorJitter{
    .name = "ColorJitter",
    .doc =
        "Changes brightness, contrast, saturation and hue at random, in a random order.\n\n"
        "Images of one or three channels, (C, H, W), uint8 or float32; shape and dtype are "
        "unchanged, and so are masks. Contrast needs the mean of the whole image, so earlier "
        "transforms are executed first, which adds a pass; without contrast there is no extra "
        "pass. A gray image has neither saturation nor hue.",
    .page = {.section = "Color transforms", .step = "T.ColorJitter(0.4, 0.4, 0.4, 0.1)"},
    .params = {jitter_param("brightness",
                            "x: a factor from [max(0, 1 - x), 1 + x]; or (smallest, largest)."),
               jitter_param("contrast", "The same for contrast."),
               jitter_param("saturation", "The same for saturation."),
               jitter_param("hue",
                            "x: a fraction of the circle from [-x, x]; or "
                            "(smallest, largest) between -0.5 and 0.5."),
               arithmetic_param()},
    .oracle =
        "torchvision v2's adjust_brightness, _contrast (up to 65,793 pixels), _saturation and "
        "_hue on tensors, or on Pillow images, bit for bit; contrast of float32 within 1e-6; "
        "factors and order in distribution",
    .example = {{"brightness", 0.4}, {"contrast", 0.4}, {"saturation", 0.4}, {"hue", 0.1}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      constexpr double kNoEnd = std::numeric_limits<double>::infinity();
      return std::make_unique<ColorJitter>(
          std::array<JitterRange, 4>{jitter_range(arguments, "brightness", 1, 0, kNoEnd),
                                     jitter_range(arguments, "contrast", 1, 0, kNoEnd),
                                     jitter_range(arguments, "saturation", 1, 0, kNoEnd),
                                     jitter_range(arguments, "hue", 0, -0.5, 0.5)},
          arithmetic_from(arguments));
    }};
const Register<OpRecord> registered_color_jitter(kColorJitter);

}  // namespace
}  // namespace headrace
