// SPDX-License-Identifier: Apache-2.0
// AdjustGamma: raises all values to a power.
#include <algorithm>
#include <cmath>

#include "headrace/base/registry.h"
#include "headrace/ops/color/color_floats.h"
#include "headrace/ops/color/color_steps.h"

namespace headrace {
namespace {

ColorTable gamma_table(double gamma, double gain, Arithmetic arithmetic) {
  constexpr double kGammaBytes = 255 + 1.0 - 1e-3;
  return color_table([&](int, int value) {
    if (arithmetic == Arithmetic::kPillow) {
      return std::clamp(std::trunc(kGammaBytes * gain * std::pow(value / 255.0, gamma)), 0.0,
                        255.0);
    }
    const float unit = static_cast<float>(value) * static_cast<float>(1.0 / 255);
    float power = static_cast<float>(std::pow(double{unit}, double{static_cast<float>(gamma)}));
    if (gain != 1) power = std::clamp(power * static_cast<float>(gain), 0.0f, 1.0f);
    return double{power * static_cast<float>(kGammaBytes)};
  });
}

constexpr PixelFunction kGamma{table_channels, look_up_bytes, raise_floats};

const OpRecord kAdjustGamma{
    .name = "AdjustGamma",
    .doc =
        "Raises an image's values, as numbers from 0 to 1, to a power.\n\n"
        "Images of one or three channels, (C, H, W), uint8 or float32; shape and dtype are "
        "unchanged, and so are masks. One lookup-table entry in 50,000 differs by 1 from "
        "torch's float32 power.",
    .page = {.section = "Color transforms", .step = "T.AdjustGamma(0.5)"},
    .params = {{.name = "gamma",
                .type = ParamType::kFloat,
                .doc = "Above 1 makes dark regions darker; below 1, lighter.",
                .required = true,
                .minimum = 0},
               {.name = "gain",
                .type = ParamType::kFloat,
                .doc = "Factor applied to the result.",
                .fallback = 1.0,
                .minimum = 0},
               arithmetic_param()},
    .oracle =
        "torchvision v2's adjust_gamma on Pillow images, bit for bit, or on tensors, within "
        "one level in 1 of 50,000 entries; float32 within 1e-6",
    .example = {{"gamma", 0.7}, {"gain", 1.1}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      const double gamma = arguments.number("gamma"), gain = arguments.number("gain");
      const Arithmetic arithmetic = arithmetic_from(arguments);
      const ColorTable table = gamma_table(gamma, gain, arithmetic);
      const bool torch = arithmetic == Arithmetic::kTorch;
      return std::make_unique<FixedPixelOp>(
          "AdjustGamma",
          torch ? table_step(table, kGamma, {static_cast<float>(gamma), static_cast<float>(gain)})
                : table_step(table));
    }};
const Register<OpRecord> registered_adjust_gamma(kAdjustGamma);

}  // namespace
}  // namespace headrace
