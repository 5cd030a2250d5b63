// SPDX-License-Identifier: Apache-2.0
// AugMix: mixes an image with the results of chains of operations.
#include <algorithm>

#include "headrace/base/random.h"
#include "headrace/base/registry.h"
#include "headrace/ops/policies/augmentation.h"

namespace headrace {
namespace {

constexpr int kMixBins = 10;
constexpr AugmentationScale kMixScale{
    .shear = 0.3, .degrees = 30, .color = 0.9, .translate = 1.0 / 3, .max_bits = 4, .min_bits = 0};
constexpr Augmentation::Kind kMixKinds[] = {
    Augmentation::Kind::kShearX,     Augmentation::Kind::kShearY,
    Augmentation::Kind::kTranslateX, Augmentation::Kind::kTranslateY,
    Augmentation::Kind::kRotate,     Augmentation::Kind::kPosterize,
    Augmentation::Kind::kSolarize,   Augmentation::Kind::kAutoContrast,
    Augmentation::Kind::kEqualize,   Augmentation::Kind::kBrightness,
    Augmentation::Kind::kColor,      Augmentation::Kind::kContrast,
    Augmentation::Kind::kSharpness};
constexpr size_t kWithoutColors = 9;

class AugMix final : public AugmentOp {
 public:
  explicit AugMix(const Arguments& arguments)
      : AugmentOp("AugMix", arguments),
        severity_(static_cast<int>(arguments.integer("severity"))),
        width_(static_cast<size_t>(arguments.integer("mixture_width"))),
        depth_(static_cast<int>(arguments.integer("chain_depth"))),
        alpha_(arguments.number("alpha")),
        space_(augmentations(std::span(kMixKinds).first(
                                 arguments.flag("all_ops") ? std::size(kMixKinds) : kWithoutColors),
                             kMixScale)) {}

  std::string cannot_move(const FieldState& follower) const override {
    return "\"" + follower.name + "\" (" + std::string(name_of(follower.kind)) +
           ") cannot follow an image that is shown in several places at once";
  }

  Result<void> apply(OpContext& context) const override {
    const Mixture mixture = draw(context.draws);
    for (const int field : context.fields) {
      if (Result<void> done = mix(context, field, mixture); !done) return done;
    }
    return {};
  }

 private:
  struct Mixture {
    std::vector<std::vector<DrawnAugmentation>> chains;
    std::vector<float> shares;  // for the chains
    float own = 0;              // for the image
  };

  Mixture draw(Draws& draws) const {
    Mixture out;
    for (size_t chain = 0; chain < width_; ++chain) {
      const auto steps = depth_ > 0 ? depth_ : 1 + draws.below(3);
      std::vector<DrawnAugmentation>& drawn = out.chains.emplace_back();
      for (int64_t step = 0; step < steps; ++step) {
        const auto which = static_cast<size_t>(draws.below(std::ssize(space_)));
        const int bin = static_cast<int>(draws.below(severity_));
        const bool negated = draws.coin(0.5) && space_[which].has_sign;
        drawn.push_back({&space_[which], kMixBins, bin, negated});
      }
    }
    const auto of_chains = static_cast<float>(draw_beta(draws, alpha_));
    out.own = 1 - of_chains;
    std::vector<double> shares(width_);
    draw_dirichlet(draws, alpha_, shares);
    for (const double share : shares) out.shares.push_back(static_cast<float>(share) * of_chains);
    return out;
  }

  // In float32, summed like torch; truncated to 8 bits at the end.
  Result<void> mix(OpContext& context, int field, const Mixture& mixture) const {
    const auto pixels = pixels_now(context, field);
    if (!pixels) return pixels.error();
    const std::shared_ptr<const Picture> before = *pixels;
    const size_t samples = before->pixels.size();
    std::vector<float> sum(samples);
    add(*before, mixture.own, sum);
    for (size_t chain = 0; chain < mixture.chains.size(); ++chain) {
      const Recipe untouched(before);
      context.record.fields[field].picture = untouched;
      const int own[] = {field};
      OpContext alone{context.record, own, context.draws, context.renderer};
      for (const DrawnAugmentation& step : mixture.chains[chain]) {
        if (Result<void> done = augment(alone, step); !done) return done;
      }
      const auto made = pixels_now(context, field);
      if (!made) return made.error();
      add(**made, mixture.shares[chain], sum);
    }
    auto out =
        std::make_shared<Picture>(before->channels, before->height, before->width, before->dtype);
    uint8_t* const bytes = out->pixels.data();
    for (size_t i = 0; i < samples; ++i) {
      bytes[i] = static_cast<uint8_t>(std::min(sum[i], 255.0f));  // weights may sum to 1 + 1e-7
    }
    context.record.fields[field].picture = Recipe(std::shared_ptr<const Picture>(std::move(out)));
    return {};
  }

  static void add(const Picture& picture, float share, std::vector<float>& sum) {
    const uint8_t* const bytes = picture.pixels.data();
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += share * static_cast<float>(bytes[i]);
  }

  void plan_picture(FieldState& picture) const override {
    AugmentOp::plan_picture(picture);
    if (picture.kind != FieldKind::kMask) return;
    raise_invalid_argument(name(),
                           "mixes an image with copies that are moved, and the mask \"" +
                               picture.name + "\" would not match all of them",
                           "drop the mask, or select only the images with fields=");
  }

  const int severity_;
  const size_t width_;
  const int depth_;
  const double alpha_;
  const std::vector<Augmentation> space_;
};

std::vector<Param> aug_mix_params() {
  std::vector<Param> params = with_augment_params(
      {{.name = "severity",
        .type = ParamType::kInt,
        .doc = "Draw from this many of the ten strengths, beginning with the weakest.",
        .fallback = int64_t{3},
        .minimum = 1,
        .maximum = kMixBins},
       {.name = "mixture_width",
        .type = ParamType::kInt,
        .doc = "Number of chains of operations.",
        .fallback = int64_t{3},
        .minimum = 1,
        .maximum = 64},
       {.name = "chain_depth",
        .type = ParamType::kInt,
        .doc = "Operations per chain; -1: 1 to 3, drawn for each chain.",
        .fallback = int64_t{-1},
        .minimum = -1,
        .maximum = 64},
       {.name = "alpha",
        .type = ParamType::kFloat,
        .doc = "Parameter of the Dirichlet and Beta distributions of the mixing weights.",
        .fallback = 1.0,
        .minimum = 1e-6,
        .maximum = 1e6},
       {.name = "all_ops",
        .type = ParamType::kBool,
        .doc = "Whether brightness, color, contrast and sharpness are among the operations.",
        .fallback = true}},
      "bilinear");
  std::erase_if(params, [](const Param& param) { return param.name == "mask_fill"; });
  return params;
}

const OpRecord kAugMix{
    .name = "AugMix",
    .doc =
        "Mixes an image with the results of chains of random operations.\n\n"
        "Images of one or three channels, (C, H, W), uint8; shape and dtype are unchanged. Boxes, "
        "keypoints and masks are rejected, since each chain moves the image differently. Every "
        "chain renders the image again. torchvision converts Pillow images to tensors first, so "
        "arithmetic=\"torch\" gives its result for both.",
    .page = {.section = "Automatic augmentation", .step = "T.AugMix(5)", .boxes = false},
    .params = aug_mix_params(),
    .oracle =
        "torchvision v2's AugMix on tensors: the same pixels for the same operations and "
        "weights, which are drawn from the same distribution",
    .example = {{"fill", int64_t{9}}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<AugMix>(arguments);
    }};
const Register<OpRecord> registered_aug_mix(kAugMix);

}  // namespace
}  // namespace headrace
