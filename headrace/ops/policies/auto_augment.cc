// SPDX-License-Identifier: Apache-2.0
// AutoAugment: one of 25 pairs of operations that were found by a search on a dataset.
#include <array>
#include <span>

#include "headrace/base/registry.h"
#include "headrace/ops/policies/augmentation.h"

namespace headrace {
namespace {

// The probability, and which of ten strengths.
struct PolicyStep {
  Augmentation::Kind kind;
  double p;
  int bin;
};
using SubPolicy = std::array<PolicyStep, 2>;

// Cubuk et al., AutoAugment: Learning Augmentation Strategies from Data, 2019, using torchvision's
// tables.
namespace auto_augment {
using Kind = Augmentation::Kind;
constexpr SubPolicy kImagenet[] = {
    {{{Kind::kPosterize, 0.4, 8}, {Kind::kRotate, 0.6, 9}}},
    {{{Kind::kSolarize, 0.6, 5}, {Kind::kAutoContrast, 0.6, 0}}},
    {{{Kind::kEqualize, 0.8, 0}, {Kind::kEqualize, 0.6, 0}}},
    {{{Kind::kPosterize, 0.6, 7}, {Kind::kPosterize, 0.6, 6}}},
    {{{Kind::kEqualize, 0.4, 0}, {Kind::kSolarize, 0.2, 4}}},
    {{{Kind::kEqualize, 0.4, 0}, {Kind::kRotate, 0.8, 8}}},
    {{{Kind::kSolarize, 0.6, 3}, {Kind::kEqualize, 0.6, 0}}},
    {{{Kind::kPosterize, 0.8, 5}, {Kind::kEqualize, 1.0, 0}}},
    {{{Kind::kRotate, 0.2, 3}, {Kind::kSolarize, 0.6, 8}}},
    {{{Kind::kEqualize, 0.6, 0}, {Kind::kPosterize, 0.4, 6}}},
    {{{Kind::kRotate, 0.8, 8}, {Kind::kColor, 0.4, 0}}},
    {{{Kind::kRotate, 0.4, 9}, {Kind::kEqualize, 0.6, 0}}},
    {{{Kind::kEqualize, 0.0, 0}, {Kind::kEqualize, 0.8, 0}}},
    {{{Kind::kInvert, 0.6, 0}, {Kind::kEqualize, 1.0, 0}}},
    {{{Kind::kColor, 0.6, 4}, {Kind::kContrast, 1.0, 8}}},
    {{{Kind::kRotate, 0.8, 8}, {Kind::kColor, 1.0, 2}}},
    {{{Kind::kColor, 0.8, 8}, {Kind::kSolarize, 0.8, 7}}},
    {{{Kind::kSharpness, 0.4, 7}, {Kind::kInvert, 0.6, 0}}},
    {{{Kind::kShearX, 0.6, 5}, {Kind::kEqualize, 1.0, 0}}},
    {{{Kind::kColor, 0.4, 0}, {Kind::kEqualize, 0.6, 0}}},
    {{{Kind::kEqualize, 0.4, 0}, {Kind::kSolarize, 0.2, 4}}},
    {{{Kind::kSolarize, 0.6, 5}, {Kind::kAutoContrast, 0.6, 0}}},
    {{{Kind::kInvert, 0.6, 0}, {Kind::kEqualize, 1.0, 0}}},
    {{{Kind::kColor, 0.6, 4}, {Kind::kContrast, 1.0, 8}}},
    {{{Kind::kEqualize, 0.8, 0}, {Kind::kEqualize, 0.6, 0}}},
};
constexpr SubPolicy kCifar10[] = {
    {{{Kind::kInvert, 0.1, 0}, {Kind::kContrast, 0.2, 6}}},
    {{{Kind::kRotate, 0.7, 2}, {Kind::kTranslateX, 0.3, 9}}},
    {{{Kind::kSharpness, 0.8, 1}, {Kind::kSharpness, 0.9, 3}}},
    {{{Kind::kShearY, 0.5, 8}, {Kind::kTranslateY, 0.7, 9}}},
    {{{Kind::kAutoContrast, 0.5, 0}, {Kind::kEqualize, 0.9, 0}}},
    {{{Kind::kShearY, 0.2, 7}, {Kind::kPosterize, 0.3, 7}}},
    {{{Kind::kColor, 0.4, 3}, {Kind::kBrightness, 0.6, 7}}},
    {{{Kind::kSharpness, 0.3, 9}, {Kind::kBrightness, 0.7, 9}}},
    {{{Kind::kEqualize, 0.6, 0}, {Kind::kEqualize, 0.5, 0}}},
    {{{Kind::kContrast, 0.6, 7}, {Kind::kSharpness, 0.6, 5}}},
    {{{Kind::kColor, 0.7, 7}, {Kind::kTranslateX, 0.5, 8}}},
    {{{Kind::kEqualize, 0.3, 0}, {Kind::kAutoContrast, 0.4, 0}}},
    {{{Kind::kTranslateY, 0.4, 3}, {Kind::kSharpness, 0.2, 6}}},
    {{{Kind::kBrightness, 0.9, 6}, {Kind::kColor, 0.2, 8}}},
    {{{Kind::kSolarize, 0.5, 2}, {Kind::kInvert, 0.0, 0}}},
    {{{Kind::kEqualize, 0.2, 0}, {Kind::kAutoContrast, 0.6, 0}}},
    {{{Kind::kEqualize, 0.2, 0}, {Kind::kEqualize, 0.6, 0}}},
    {{{Kind::kColor, 0.9, 9}, {Kind::kEqualize, 0.6, 0}}},
    {{{Kind::kAutoContrast, 0.8, 0}, {Kind::kSolarize, 0.2, 8}}},
    {{{Kind::kBrightness, 0.1, 3}, {Kind::kColor, 0.7, 0}}},
    {{{Kind::kSolarize, 0.4, 5}, {Kind::kAutoContrast, 0.9, 0}}},
    {{{Kind::kTranslateY, 0.9, 9}, {Kind::kTranslateY, 0.7, 9}}},
    {{{Kind::kAutoContrast, 0.9, 0}, {Kind::kSolarize, 0.8, 3}}},
    {{{Kind::kEqualize, 0.8, 0}, {Kind::kInvert, 0.1, 0}}},
    {{{Kind::kTranslateY, 0.7, 9}, {Kind::kAutoContrast, 0.9, 0}}},
};
constexpr SubPolicy kSvhn[] = {
    {{{Kind::kShearX, 0.9, 4}, {Kind::kInvert, 0.2, 0}}},
    {{{Kind::kShearY, 0.9, 8}, {Kind::kInvert, 0.7, 0}}},
    {{{Kind::kEqualize, 0.6, 0}, {Kind::kSolarize, 0.6, 6}}},
    {{{Kind::kInvert, 0.9, 0}, {Kind::kEqualize, 0.6, 0}}},
    {{{Kind::kEqualize, 0.6, 0}, {Kind::kRotate, 0.9, 3}}},
    {{{Kind::kShearX, 0.9, 4}, {Kind::kAutoContrast, 0.8, 0}}},
    {{{Kind::kShearY, 0.9, 8}, {Kind::kInvert, 0.4, 0}}},
    {{{Kind::kShearY, 0.9, 5}, {Kind::kSolarize, 0.2, 6}}},
    {{{Kind::kInvert, 0.9, 0}, {Kind::kAutoContrast, 0.8, 0}}},
    {{{Kind::kEqualize, 0.6, 0}, {Kind::kRotate, 0.9, 3}}},
    {{{Kind::kShearX, 0.9, 4}, {Kind::kSolarize, 0.3, 3}}},
    {{{Kind::kShearY, 0.8, 8}, {Kind::kInvert, 0.7, 0}}},
    {{{Kind::kEqualize, 0.9, 0}, {Kind::kTranslateY, 0.6, 6}}},
    {{{Kind::kInvert, 0.9, 0}, {Kind::kEqualize, 0.6, 0}}},
    {{{Kind::kContrast, 0.3, 3}, {Kind::kRotate, 0.8, 4}}},
    {{{Kind::kInvert, 0.8, 0}, {Kind::kTranslateY, 0.0, 2}}},
    {{{Kind::kShearY, 0.7, 6}, {Kind::kSolarize, 0.4, 8}}},
    {{{Kind::kInvert, 0.6, 0}, {Kind::kRotate, 0.8, 4}}},
    {{{Kind::kShearY, 0.3, 7}, {Kind::kTranslateX, 0.9, 3}}},
    {{{Kind::kShearX, 0.1, 6}, {Kind::kInvert, 0.6, 0}}},
    {{{Kind::kSolarize, 0.7, 2}, {Kind::kTranslateY, 0.6, 7}}},
    {{{Kind::kShearY, 0.8, 4}, {Kind::kInvert, 0.8, 0}}},
    {{{Kind::kShearX, 0.7, 9}, {Kind::kTranslateY, 0.8, 3}}},
    {{{Kind::kShearY, 0.8, 5}, {Kind::kAutoContrast, 0.7, 0}}},
    {{{Kind::kShearX, 0.7, 2}, {Kind::kInvert, 0.1, 0}}},
};
}  // namespace auto_augment

constexpr int kAutoBins = 10;
constexpr AugmentationScale kAutoScale{.shear = 0.3,
                                       .degrees = 30,
                                       .color = 0.9,
                                       .translate = 150.0 / 331,
                                       .max_bits = 8,
                                       .min_bits = 4};

std::span<const SubPolicy> policy_named(std::string_view name) {
  if (name == "cifar10") return auto_augment::kCifar10;
  if (name == "svhn") return auto_augment::kSvhn;
  return auto_augment::kImagenet;
}

class AutoAugment final : public AugmentOp {
 public:
  explicit AutoAugment(const Arguments& arguments) : AugmentOp("AutoAugment", arguments) {
    for (const SubPolicy& pair : policy_named(arguments.text("policy"))) {
      const Augmentation::Kind kinds[] = {pair[0].kind, pair[1].kind};
      const std::vector<Augmentation> made = augmentations(kinds, kAutoScale);
      for (size_t i = 0; i < pair.size(); ++i) steps_.push_back({made[i], pair[i].p, pair[i].bin});
    }
  }

  Result<void> apply(OpContext& context) const override {
    Draws& draws = context.draws;
    const auto first = static_cast<size_t>(2 * draws.below(std::ssize(steps_) / 2));
    for (const Found& step : std::span(steps_).subspan(first, 2)) {
      const bool taken = draws.coin(step.p);
      const bool negated = draws.coin(0.5) && step.augmentation.has_sign;
      if (!taken) continue;
      Result<void> done = augment(context, {&step.augmentation, kAutoBins, step.bin, negated});
      if (!done) return done;
    }
    return {};
  }

 private:
  struct Found {
    Augmentation augmentation;
    double p;
    int bin;
  };
  std::vector<Found> steps_;  // two per pair
};

const OpRecord kAutoAugment{
    .name = "AutoAugment",
    .doc =
        "Applies one of 25 pairs of operations that were learned from a dataset.\n\n"
        "Images of one or three channels, and masks, (C, H, W), uint8; shape and dtype are "
        "unchanged. Boxes, masks and keypoints follow shears, translations and rotations, which "
        "torchvision does not support; operations on color and sharpness change images only. "
        "Operations that rotate or sharpen the image, or need statistics of it, add a pass over "
        "it.",
    .page = {.section = "Automatic augmentation", .step = "T.AutoAugment()"},
    .params = with_augment_params({{.name = "policy",
                                    .type = ParamType::kString,
                                    .doc = "Dataset whose learned policy to use.",
                                    .fallback = std::string("imagenet"),
                                    .choices = {"imagenet", "cifar10", "svhn"}}},
                                  "nearest"),
    .oracle =
        "torchvision v2's AutoAugment on tensors, or on Pillow images: the same pixels for the "
        "same pair and signs, which are drawn from the same distribution",
    .example = {{"fill", int64_t{9}}, {"mask_fill", int64_t{1}}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<AutoAugment>(arguments);
    }};
const Register<OpRecord> registered_auto_augment(kAutoAugment);

}  // namespace
}  // namespace headrace
