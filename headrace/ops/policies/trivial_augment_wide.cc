// SPDX-License-Identifier: Apache-2.0
// TrivialAugmentWide: one random operation out of fourteen, at a random magnitude.
#include "headrace/base/registry.h"
#include "headrace/ops/policies/augmentation.h"

namespace headrace {
namespace {

constexpr AugmentationScale kWideScale{.shear = 0.99,
                                       .degrees = 135,
                                       .color = 0.99,
                                       .translate = 32,
                                       .translates_pixels = true,
                                       .max_bits = 8,
                                       .min_bits = 2};

class TrivialAugmentWide final : public AugmentOp {
 public:
  explicit TrivialAugmentWide(const Arguments& arguments)
      : AugmentOp("TrivialAugmentWide", arguments),
        bins_(static_cast<int>(arguments.integer("num_magnitude_bins"))),
        space_(augmentations(kFourteenKinds, kWideScale)) {}

  Result<void> apply(OpContext& context) const override {
    Draws& draws = context.draws;
    const auto which = static_cast<size_t>(draws.below(std::ssize(space_)));
    const int bin = static_cast<int>(draws.below(bins_));
    const bool negated = draws.coin(0.5) && space_[which].has_sign;
    return augment(context, {&space_[which], bins_, bin, negated});
  }

 private:
  const int bins_;
  const std::vector<Augmentation> space_;
};

const OpRecord kTrivialAugmentWide{
    .name = "TrivialAugmentWide",
    .doc =
        "Applies one random operation out of fourteen, at a random magnitude.\n\n"
        "Images of one or three channels, and masks, (C, H, W), uint8; shape and dtype are "
        "unchanged. Boxes, masks and keypoints follow shears, translations and rotations, which "
        "torchvision does not support; operations on color and sharpness change images only. "
        "Operations that rotate or sharpen the image, or need statistics of it, add a pass over "
        "it.",
    .page = {.section = "Automatic augmentation", .step = "T.TrivialAugmentWide()"},
    .params = with_augment_params({{.name = "num_magnitude_bins",
                                    .type = ParamType::kInt,
                                    .doc = "Number of magnitudes to draw from.",
                                    .fallback = int64_t{31},
                                    .minimum = 2,
                                    .maximum = 1 << 20}},
                                  "nearest"),
    .oracle =
        "torchvision v2's TrivialAugmentWide on tensors, or on Pillow images: the same pixels "
        "for the same operation and strength, which are drawn from the same distribution",
    .example = {{"fill", int64_t{9}}, {"mask_fill", int64_t{1}}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<TrivialAugmentWide>(arguments);
    }};
const Register<OpRecord> registered_trivial_augment_wide(kTrivialAugmentWide);

}  // namespace
}  // namespace headrace
