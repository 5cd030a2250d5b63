// SPDX-License-Identifier: Apache-2.0
// RandomInvert: the negative of a picture, with probability p.
#include "headrace/base/registry.h"
#include "headrace/ops/color/color_steps.h"

namespace headrace {
namespace {

const OpRecord kRandomInvert{
    .name = "RandomInvert",
    .doc =
        "Turns images into their negatives, with probability p.\n\n"
        "Images of one or three channels, (C, H, W), uint8 or float32; shape and dtype are "
        "unchanged, and so are masks.",
    .page = {.section = "Color transforms", .step = "T.RandomInvert(1.0)"},
    .params = {probability_param("Probability of inverting a record's images.")},
    .oracle = "torchvision v2's invert, bit for bit",
    .example = {{"p", 0.9}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<RandomFixedPixelOp>("RandomInvert", arguments.number("p"),
                                                  invert_step());
    }};
const Register<OpRecord> registered_random_invert(kRandomInvert);

}  // namespace
}  // namespace headrace
