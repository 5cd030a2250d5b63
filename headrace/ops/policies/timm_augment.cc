// SPDX-License-Identifier: Apache-2.0
// TimmAugment: timm's augmentation strings.
#include <algorithm>
#include <cmath>
#include <limits>

#include "headrace/base/random.h"
#include "headrace/base/registry.h"
#include "headrace/kernels/color/color_rows.h"
#include "headrace/ops/color/color_steps.h"
#include "headrace/ops/filters/blurs.h"
#include "headrace/ops/policies/timm_policy.h"

namespace headrace {
namespace {

using TimmKind = TimmStep::Kind;

struct DrawnTimm {
  const TimmStep* step = nullptr;
  bool taken = false;
  double argument = 0;
  Filter filter = Filter::kBicubic;
};

bool moves_pixels(TimmKind kind) {
  return kind == TimmKind::kRotate || (kind >= TimmKind::kShearX && kind <= TimmKind::kTranslateY);
}

Augmentation::Kind color_of(TimmKind kind) {
  using Ours = Augmentation::Kind;
  using enum TimmStep::Kind;
  switch (kind) {
    case kAutoContrast:
      return Ours::kAutoContrast;
    case kEqualize:
      return Ours::kEqualize;
    case kInvert:
      return Ours::kInvert;
    case kPosterize:
    case kPosterizeIncreasing:
    case kPosterizeOriginal:
      return Ours::kPosterize;
    case kSolarize:
    case kSolarizeIncreasing:
      return Ours::kSolarize;
    case kContrast:
    case kContrastIncreasing:
      return Ours::kContrast;
    case kBrightness:
    case kBrightnessIncreasing:
      return Ours::kBrightness;
    case kSharpness:
    case kSharpnessIncreasing:
      return Ours::kSharpness;
    default:
      return Ours::kColor;
  }
}

// Brightens values below the middle.
PixelStep solarize_add_step(int by) {
  return table_step(
      color_table([&](int, int value) { return value < 128 ? std::min(255, value + by) : value; }));
}

// As large as `like`, plus room for what kernels touch past the end.
std::shared_ptr<Picture> picture_like(const Picture& like) {
  return std::make_shared<Picture>(like.channels, like.height, like.width, like.dtype);
}

class TimmAugment final : public WarpOp {
 public:
  explicit TimmAugment(const Arguments& arguments)
      : WarpOp("TimmAugment", arguments),
        policy_(timm_policy(name(), arguments.text("policy"))),
        draws_filter_(arguments.text("interpolation") == "random"),
        translate_(arguments.number("translate_pct")) {}

  size_t scratch_per_pixel() const override {
    constexpr size_t kMixed = 3 * (sizeof(float) + 3);  // sums, and three 8-bit pictures
    return WarpOp::scratch_per_pixel() + (mixes() ? kMixed : 0);
  }

  std::string cannot_move(const FieldState& follower) const override {
    if (!mixes()) return WarpOp::cannot_move(follower);
    return "\"" + follower.name + "\" (" + std::string(name_of(follower.kind)) +
           ") cannot follow an image that is shown in several places at once";
  }

  Result<void> apply(OpContext& context) const override {
    if (mixes()) return apply_mixture(context);
    for (const DrawnTimm& drawn : chosen(context.draws)) {
      if (Result<void> done = act(context, drawn); !done) return done;
    }
    return {};
  }

 private:
  struct Mixture {
    std::vector<std::vector<DrawnTimm>> chains;
    std::vector<float> shares;
    float mixed = 0;
  };

  bool mixes() const { return policy_.form == TimmPolicy::Form::kAugMix; }

  DrawnTimm draw(Draws& draws, const TimmStep& step) const {
    DrawnTimm drawn{.step = &step, .taken = draws.coin(step.p)};
    double level = step.magnitude;
    if (std::isinf(policy_.deviation)) {
      level = draws.uniform(0, step.magnitude);
    } else if (policy_.deviation > 0) {
      level += policy_.deviation * draw_normal(draws);
    }
    level = std::clamp(level, 0.0, policy_.most);
    const bool negated = draws.coin(0.5), bilinear = draws.coin(0.5);
    drawn.argument = timm_argument(step.kind, level, negated, translate_, draws.uniform());
    drawn.filter = !draws_filter_ ? style().interpolation
                   : bilinear     ? Filter::kBilinear
                                  : Filter::kBicubic;
    return drawn;
  }

  std::vector<DrawnTimm> chosen(Draws& draws) const {
    std::vector<DrawnTimm> out;
    const std::vector<TimmStep>& steps = policy_.steps;
    if (policy_.form == TimmPolicy::Form::kAuto) {
      const int64_t first = policy_.pair * draws.below(std::ssize(steps) / policy_.pair);
      for (int64_t i = first; i < first + policy_.pair; ++i) {
        out.push_back(draw(draws, steps[size_t(i)]));
      }
      return out;
    }
    std::vector<double> weights = policy_.weights;  // of the steps not yet drawn
    for (int layer = 0; layer < policy_.layers; ++layer) {
      const size_t which = weights.empty() ? static_cast<size_t>(draws.below(std::ssize(steps)))
                                           : taken_from(weights, draws);
      out.push_back(draw(draws, steps[which]));
    }
    return out;
  }

  // REQUIRES: at least one nonzero weight remains.
  static size_t taken_from(std::vector<double>& weights, Draws& draws) {
    double all = 0;
    for (const double weight : weights) all += weight;
    double place = draws.uniform() * all;
    size_t which = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] == 0) continue;
      which = i;  // falls back to the last one if rounding passes the end
      if (place < weights[i]) break;
      place -= weights[i];
    }
    weights[which] = 0;
    return which;
  }

  Result<void> act(OpContext& context, const DrawnTimm& drawn) const {
    if (!drawn.taken) return {};
    if (moves_pixels(drawn.step->kind)) {
      return follow_by_size(context, [&](Size canvas) { return moved(drawn, canvas); });
    }
    for (const int field : context.fields) {
      if (context.record.fields[field].kind != FieldKind::kImage) continue;
      if (Result<void> done = color(context, field, drawn); !done) return done;
    }
    return {};
  }

  // Pillow's matrices map output positions to input positions.
  Result<Geometry> moved(const DrawnTimm& drawn, Size canvas) const {
    WarpStyle how = style();
    how.interpolation = drawn.filter;
    const double by = drawn.argument;
    if (drawn.step->kind == TimmKind::kRotate) {
      return geometry_of(rotation_warp(by, false, {}, canvas, how), canvas);
    }
    Warp warp{
        .style = how, .to = canvas, .lookup = {1, 0, 0, 0, 1, 0}, .points = {1, 0, 0, 0, 1, 0}};
    const auto set = [&](size_t at, double value) {
      warp.lookup[at] = value;
      warp.points[at] = -value;
    };
    if (drawn.step->kind == TimmKind::kShearX) set(1, by);
    if (drawn.step->kind == TimmKind::kShearY) set(3, by);
    if (drawn.step->kind == TimmKind::kTranslateX) set(2, by * canvas.width);
    if (drawn.step->kind == TimmKind::kTranslateY) set(5, by * canvas.height);
    if (by == 0) warp.quarter_turns = 0;
    return geometry_of(warp, canvas);
  }

  Result<void> color(OpContext& context, int field, const DrawnTimm& drawn) const {
    const TimmKind kind = drawn.step->kind;
    if (kind == TimmKind::kSolarizeAdd) {
      const PixelStep step = solarize_add_step(static_cast<int>(drawn.argument));
      return edit(context, field, [&](Recipe& picture) { return picture.compute(step); });
    }
    if (kind != TimmKind::kGaussianBlur && kind != TimmKind::kGaussianBlurRand) {
      return recolor(context, field, color_of(kind), drawn.argument, Arithmetic::kPillow);
    }
    const auto pixels = pixels_now(context, field);
    if (!pixels) return pixels.error();
    const std::shared_ptr<Picture> blurred = picture_like(**pixels);
    blur_as_pillow(**pixels, drawn.argument, *blurred);
    context.record.fields[field].picture = Recipe(blurred);
    return {};
  }

  Mixture drawn_mixture(Draws& draws) const {
    Mixture out;
    for (int chain = 0; chain < policy_.width; ++chain) {
      const int64_t depth = policy_.depth > 0 ? policy_.depth : 1 + draws.below(3);
      std::vector<DrawnTimm>& steps = out.chains.emplace_back();
      for (int64_t i = 0; i < depth; ++i) {
        const auto which = static_cast<size_t>(draws.below(std::ssize(policy_.steps)));
        steps.push_back(draw(draws, policy_.steps[which]));
      }
    }
    std::vector<double> shares(size_t(policy_.width));
    draw_dirichlet(draws, policy_.alpha, shares);
    out.shares.assign(shares.begin(), shares.end());
    out.mixed = static_cast<float>(draw_beta(draws, policy_.alpha));
    return out;
  }

  Result<void> apply_mixture(OpContext& context) const {
    const Mixture mixture = drawn_mixture(context.draws);
    for (const int field : context.fields) {
      const auto pixels = pixels_now(context, field);
      if (!pixels) return pixels.error();
      Result<std::shared_ptr<const Picture>> made = policy_.blended
                                                        ? blended(context, field, *pixels, mixture)
                                                        : mixed(context, field, *pixels, mixture);
      if (!made) return std::move(made.error());
      context.record.fields[field].picture = Recipe(std::move(*made));
    }
    return {};
  }

  // The pixels after a chain.
  Result<std::shared_ptr<const Picture>> through(OpContext& context, int field,
                                                 const std::shared_ptr<const Picture>& pixels,
                                                 const std::vector<DrawnTimm>& chain) const {
    context.record.fields[field].picture = Recipe(pixels);
    const int own[] = {field};
    OpContext alone{context.record, own, context.draws, context.renderer};
    for (const DrawnTimm& drawn : chain) {
      if (Result<void> done = act(alone, drawn); !done) return std::move(done.error());
    }
    return pixels_now(context, field);
  }

  // The chains are added in float32 like NumPy, truncated to 8 bits, then blended with the image.
  Result<std::shared_ptr<const Picture>> mixed(OpContext& context, int field,
                                               const std::shared_ptr<const Picture>& own,
                                               const Mixture& mixture) const {
    const size_t samples = own->pixels.size();
    std::vector<float> sum(samples);
    for (size_t chain = 0; chain < mixture.chains.size(); ++chain) {
      const auto made = through(context, field, own, mixture.chains[chain]);
      if (!made) return made.error();
      const uint8_t* const bytes = (*made)->pixels.data();
      for (size_t i = 0; i < samples; ++i) {
        sum[i] += mixture.shares[chain] * static_cast<float>(bytes[i]);
      }
    }
    const std::shared_ptr<Picture> out = picture_like(*own);
    uint8_t* const bytes = out->pixels.data();
    for (size_t i = 0; i < samples; ++i) bytes[i] = static_cast<uint8_t>(std::min(sum[i], 255.0f));
    blend_row_as_pillow(bytes, own->pixels.data(), static_cast<int>(samples),
                        pillow_blend(mixture.mixed), bytes);
    return std::shared_ptr<const Picture>(out);
  }

  // The chains run in sequence; each is blended with the result so far.
  Result<std::shared_ptr<const Picture>> blended(OpContext& context, int field,
                                                 const std::shared_ptr<const Picture>& own,
                                                 const Mixture& mixture) const {
    const std::shared_ptr<Picture> out = picture_like(*own);
    const size_t samples = own->pixels.size();
    std::copy_n(own->pixels.data(), samples, out->pixels.data());
    std::vector<float> weights(mixture.shares.size());
    float left = 1;
    for (size_t i = weights.size(); i-- > 0;) {
      weights[i] = left > 0 ? mixture.shares[i] * mixture.mixed / left : 0;
      left *= 1 - weights[i];
    }
    for (size_t chain = 0; chain < weights.size(); ++chain) {
      const auto made = through(context, field, own, mixture.chains[chain]);
      if (!made) return made.error();
      blend_row_as_pillow((*made)->pixels.data(), out->pixels.data(), static_cast<int>(samples),
                          pillow_blend(weights[chain]), out->pixels.data());
    }
    return std::shared_ptr<const Picture>(out);
  }

  void plan_picture(FieldState& picture) const override {
    WarpOp::plan_picture(picture);
    check_colors(name(), picture);
    if (picture.kind != FieldKind::kMask || !mixes()) return;
    raise_invalid_argument(name(),
                           "mixes an image with copies that are moved, and the mask \"" +
                               picture.name + "\" would not match all of them",
                           "drop the mask, or select only the images with fields=");
  }

  const TimmPolicy policy_;
  const bool draws_filter_;
  const double translate_;
};

std::vector<Param> timm_params() {
  std::vector<Param> params = with_warp_params(
      {{.name = "policy",
        .type = ParamType::kString,
        .doc = "timm's string: \"rand\", \"augmix\", \"original\", \"originalr\", \"v0\", \"v0r\" "
               "or \"3a\", and its options, as in \"rand-m9-mstd0.5-inc1\".",
        .required = true}},
      "random");
  std::erase_if(params, [](const Param& param) { return param.name == "arithmetic"; });
  for (Param& param : params) {
    if (param.name == "interpolation") {
      param.choices = {"random", "bilinear", "bicubic", "nearest"};
      param.doc =
          "Interpolation of pixels; \"random\": bilinear or bicubic, drawn for each operation. "
          "Masks always use nearest.";
    }
    if (param.name == "fill") param.fallback = int64_t{128};
  }
  params.push_back({.name = "translate_pct",
                    .type = ParamType::kFloat,
                    .doc = "Distance of the strongest translation, as a fraction of the size; "
                           "timm's create_transform uses 0.3 for \"augmix\".",
                    .fallback = 0.45,
                    .minimum = 0,
                    .maximum = 10});
  return params;
}

const OpRecord kTimmAugment{
    .name = "TimmAugment",
    .doc =
        "Applies the augmentation policy specified by one of timm's strings.\n\n"
        "Images of one or three channels, and masks, (C, H, W), uint8; shape and dtype are "
        "unchanged. Boxes, masks and keypoints follow its geometric operations; \"augmix\" rejects "
        "them, because it blends differently moved copies. timm's create_transform sets fill to "
        "the dataset's mean, (124, 116, 104) for ImageNet. A part of the string that timm does not "
        "know, or silently ignores, is an error. Posterizing to 0 bits gives black, as in Pillow "
        "before 13; later versions reject it.",
    .page = {.section = "Automatic augmentation",
             .step = "T.TimmAugment(\"rand-m9-mstd0.5-inc1\")"},
    .params = timm_params(),
    .oracle =
        "timm 1.0's auto_augment on Pillow images: the same pixels for the same "
        "operations and levels, which are drawn from the same distributions",
    .example = {{"policy", std::string("rand-m9-mstd0.5-inc1")},
                {"fill", int64_t{9}},
                {"mask_fill", int64_t{1}}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<TimmAugment>(arguments);
    }};
const Register<OpRecord> registered_timm_augment(kTimmAugment);

}  // namespace
}  // namespace headrace
