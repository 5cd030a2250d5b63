// SPDX-License-Identifier: Apache-2.0
// RandomChannelPermutation: the channels in a random order.
#include "headrace/base/registry.h"
#include "headrace/ops/color/color_steps.h"

namespace headrace {
namespace {

class RandomChannelPermutation final : public PixelOp {
 public:
  RandomChannelPermutation() : PixelOp("RandomChannelPermutation") {}

  // One order for all images of the record.
  Result<void> apply(OpContext& context) const override {
    return compute_all(context, permutation_step(context.draws));
  }

 private:
  void plan_image(FieldState& image) const override {
    Draws any(0, 0, 0, 0);
    plan_step(permutation_step(any), image);
  }
};

const OpRecord kRandomChannelPermutation{
    .name = "RandomChannelPermutation",
    .doc =
        "Puts an image's channels in a random order.\n\n"
        "Images of one or three channels, (C, H, W), uint8 or float32; shape and dtype are "
        "unchanged, and so are masks. All images of a record get the same order.",
    .page = {.section = "Color transforms", .step = "T.RandomChannelPermutation()"},
    .params = {},
    .oracle = "torchvision v2's permute_channels, bit for bit; the order in distribution",
    .random = true,
    .make = [](const Arguments&) -> std::unique_ptr<Op> {
      return std::make_unique<RandomChannelPermutation>();
    }};
const Register<OpRecord> registered_random_channel_permutation(kRandomChannelPermutation);

}  // namespace
}  // namespace headrace
