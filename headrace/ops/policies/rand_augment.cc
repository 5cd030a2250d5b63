// SPDX-License-Identifier: Apache-2.0
// RandAugment: random operations out of fourteen, all with the same magnitude.
#include "headrace/base/registry.h"
#include "headrace/ops/policies/augmentation.h"

namespace headrace {
namespace {

constexpr AugmentationScale kRandScale{.shear = 0.3,
                                       .degrees = 30,
                                       .color = 0.9,
                                       .translate = 150.0 / 331,
                                       .max_bits = 8,
                                       .min_bits = 4};

class RandAugment final : public AugmentOp {
 public:
  explicit RandAugment(const Arguments& arguments)
      : AugmentOp("RandAugment", arguments),
        count_(static_cast<int>(arguments.integer("num_ops"))),
        bins_(static_cast<int>(arguments.integer("num_magnitude_bins"))),
        bin_(static_cast<int>(arguments.integer("magnitude"))),
        space_(augmentations(kFourteenKinds, kRandScale)) {
    if (bin_ >= bins_) {
      raise_invalid_argument(name(), "magnitude is " + std::to_string(bin_) +
                                         ", but it must be less than "
                                         "num_magnitude_bins, " +
                                         std::to_string(bins_));
    }
  }

  Result<void> apply(OpContext& context) const override {
    for (int i = 0; i < count_; ++i) {
      const auto which = static_cast<size_t>(context.draws.below(std::ssize(space_)));
      const bool negated = context.draws.coin(0.5) && space_[which].has_sign;
      Result<void> done = augment(context, {&space_[which], bins_, bin_, negated});
      if (!done) return done;
    }
    return {};
  }

 private:
  const int count_, bins_, bin_;
  const std::vector<Augmentation> space_;
};

const OpRecord kRandAugment{
    .name = "RandAugment",
    .doc =
        "Applies num_ops random operations out of fourteen, all with the same magnitude.\n\n"
        "Images of one or three channels, and masks, (C, H, W), uint8; shape and dtype are "
        "unchanged. Boxes, masks and keypoints follow shears, translations and rotations, which "
        "torchvision does not support; operations on color and sharpness change images only. "
        "Operations that rotate or sharpen the image, or need statistics of it, add a pass over "
        "it.",
    .page = {.section = "Automatic augmentation", .step = "T.RandAugment(2, 15)"},
    .params = with_augment_params(
        {{.name = "num_ops",
          .type = ParamType::kInt,
          .doc = "Number of operations, applied in sequence.",
          .fallback = int64_t{2},
          .minimum = 1,
          .maximum = 64},
         {.name = "magnitude",
          .type = ParamType::kInt,
          .doc = "Magnitude of all operations, from 0 to num_magnitude_bins - 1.",
          .fallback = int64_t{9},
          .minimum = 0,
          .maximum = 1 << 20},
         {.name = "num_magnitude_bins",
          .type = ParamType::kInt,
          .doc = "Number of magnitudes.",
          .fallback = int64_t{31},
          .minimum = 2,
          .maximum = 1 << 20}},
        "nearest"),
    .oracle =
        "torchvision v2's RandAugment on tensors, or on Pillow images: the same pixels for the "
        "same operations, which are drawn from the same distribution",
    .example = {{"fill", int64_t{9}}, {"mask_fill", int64_t{1}}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<RandAugment>(arguments);
    }};
const Register<OpRecord> registered_rand_augment(kRandAugment);

}  // namespace
}  // namespace headrace
