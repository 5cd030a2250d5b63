// SPDX-License-Identifier: Apache-2.0
// RandomPhotometricDistort: the color part of SSD's augmentation.
#include <array>
#include <limits>
#include <optional>
#include <string>

#include "headrace/base/registry.h"
#include "headrace/ops/color/color_steps.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

constexpr std::string_view kDistort = "RandomPhotometricDistort";

using DistortRange = std::array<double, 2>;

class RandomPhotometricDistort final : public PixelOp {
 public:
  RandomPhotometricDistort(const std::array<DistortRange, 4>& ranges, double p,
                           Arithmetic arithmetic)
      : PixelOp(kDistort), ranges_(ranges), p_(p), arithmetic_(arithmetic) {}

  Result<void> apply(OpContext& context) const override {
    Draws& draws = context.draws;
    std::array<std::optional<double>, 4> factors;
    for (size_t i = 0; i < factors.size(); ++i) {
      if (draws.coin(p_)) factors[i] = draws.uniform(ranges_[i][0], ranges_[i][1]);
    }
    constexpr auto kBright = Adjustment::kBrightness, kContrast = Adjustment::kContrast,
                   kSaturation = Adjustment::kSaturation, kHue = Adjustment::kHue;
    const std::array<Adjustment, 4> order = draws.coin(0.5)
                                                ? std::array{kBright, kContrast, kSaturation, kHue}
                                                : std::array{kBright, kSaturation, kHue, kContrast};
    std::optional<PixelStep> permutation;
    if (draws.coin(p_)) permutation = permutation_step(draws);
    for (const int field : context.fields) {
      for (const Adjustment adjustment : order) {
        const std::optional<double>& factor = factors[static_cast<size_t>(adjustment)];
        if (!factor) continue;
        const auto change = adjustment_of(adjustment, *factor, arithmetic_);
        Result<void> done =
            std::visit([&](const auto& its) { return compute(context, field, its); }, change);
        if (!done) return done;
      }
      if (!permutation) continue;
      if (Result<void> done = compute(context, field, *permutation); !done) return done;
    }
    return {};
  }
  bool measures() const override { return true; }

 private:
  void plan_image(FieldState& image) const override {
    plan_step(any_color_step(arithmetic_), image);
  }
  const std::array<DistortRange, 4> ranges_;  // in the order of Adjustment
  const double p_;
  const Arithmetic arithmetic_;
};

DistortRange distort_range(const Arguments& arguments, std::string_view name) {
  const std::vector<double>& given = arguments.numbers(name);
  if (given[0] > given[1])
    raise_invalid_argument(kDistort, std::string(name) + " must be (smallest, largest)");
  return {given[0], given[1]};
}

Param distort_param(std::string_view name, std::string_view doc, std::vector<double> fallback,
                    double minimum, double maximum) {
  return {.name = name,
          .type = ParamType::kFloats,
          .doc = doc,
          .fallback = std::move(fallback),
          .minimum = minimum,
          .maximum = maximum,
          .min_count = 2,
          .max_count = 2};
}

constexpr double kNoLargest = std::numeric_limits<double>::infinity();

const OpRecord kRandomPhotometricDistort{
    .name = kDistort,
    .doc =
        "Changes brightness, contrast, saturation, hue and the order of channels, each with "
        "probability p, as in SSD training.\n\n"
        "Images of one or three channels, (C, H, W), uint8 or float32; shape and dtype are "
        "unchanged, and so are masks. Contrast, if drawn, needs the mean of the whole image, which "
        "adds a pass.",
    .page = {.section = "Color transforms", .step = "T.RandomPhotometricDistort(p=0.9)"},
    .params = {distort_param("brightness", "Smallest and largest factor.", {0.875, 1.125}, 0,
                             kNoLargest),
               distort_param("contrast", "Smallest and largest factor.", {0.5, 1.5}, 0, kNoLargest),
               distort_param("saturation", "Smallest and largest factor.", {0.5, 1.5}, 0,
                             kNoLargest),
               distort_param("hue", "Smallest and largest fraction of the circle.", {-0.05, 0.05},
                             -0.5, 0.5),
               probability_param("Probability of each of the five changes."), arithmetic_param()},
    .oracle =
        "torchvision v2's adjust_brightness, _contrast (up to 65,793 pixels), _saturation, _hue "
        "and permute_channels, bit for bit; contrast of float32 within 1e-6; random factors in "
        "distribution",
    .example = {{"p", 0.8}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<RandomPhotometricDistort>(
          std::array<DistortRange, 4>{
              distort_range(arguments, "brightness"), distort_range(arguments, "contrast"),
              distort_range(arguments, "saturation"), distort_range(arguments, "hue")},
          arguments.number("p"), arithmetic_from(arguments));
    }};
const Register<OpRecord> registered_random_photometric_distort(kRandomPhotometricDistort);

}  // namespace
}  // namespace headrace
