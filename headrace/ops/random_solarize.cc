// SPDX-License-Identifier: Apache-2.0
// RandomSolarize: values from a threshold on are inverted, with probability p.
#include "headrace/base/registry.h"
#include "headrace/ops/tone_steps.h"

namespace headrace {
namespace {

const OpRecord kRandomSolarize{
    .name = "RandomSolarize",
    .doc =
        "Inverts the values from a threshold on, with probability p.\n\n"
        "Images of one or three channels, (C, H, W), uint8; shape and dtype stay, and masks "
        "are left as they are.",
    .params = {{.name = "threshold",
                .type = ParamType::kFloat,
                .doc = "Values that are not below it are inverted.",
                .required = true,
                .minimum = 0,
                .maximum = 255},
               probability_param("How probable it is that a record's images are solarized.")},
    .oracle = "torchvision v2's solarize, bit for bit",
    .example = {{"threshold", 128.0}, {"p", 0.9}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<RandomFixedPixelOp>(
          "RandomSolarize", arguments.number("p"),
          solarize_step(arguments.number("threshold"), Arithmetic::kTorch));
    }};
const Register<OpRecord> registered_random_solarize(kRandomSolarize);

}  // namespace
}  // namespace headrace
