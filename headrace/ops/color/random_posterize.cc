// SPDX-License-Identifier: Apache-2.0
// RandomPosterize: keeps only the highest bits of each value, with probability p.
#include "headrace/base/registry.h"
#include "headrace/ops/color/color_steps.h"

namespace headrace {
namespace {

const OpRecord kRandomPosterize{
    .name = "RandomPosterize",
    .doc =
        "Keeps the highest bits of each value, with probability p.\n\n"
        "Images of one or three channels, (C, H, W), uint8 or float32; shape and dtype are "
        "unchanged, and so are masks.",
    .page = {.section = "Color transforms", .step = "T.RandomPosterize(2, p=1.0)"},
    .params = {{.name = "bits",
                .type = ParamType::kInt,
                .doc = "Number of bits to keep of each 8-bit value.",
                .required = true,
                .minimum = 0,
                .maximum = 8},
               probability_param("Probability of posterizing a record's images.")},
    .oracle = "torchvision v2's posterize, bit for bit",
    .example = {{"bits", int64_t{3}}, {"p", 0.9}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      const int bits = static_cast<int>(arguments.integer("bits"));
      return std::make_unique<RandomFixedPixelOp>("RandomPosterize", arguments.number("p"),
                                                  posterize_step(bits));
    }};
const Register<OpRecord> registered_random_posterize(kRandomPosterize);

}  // namespace
}  // namespace headrace
