// SPDX-License-Identifier: Apache-2.0
// RandomResize, RandomShortestSize and ScaleJitter: a random size for each record; the aspect ratio
// is kept, up to rounding to whole pixels.
#include <algorithm>

#include "headrace/base/registry.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

// One draw per record; `resized(before, drawn)` computes the new size.
class RandomSizeOp : public PictureOp {
 public:
  RandomSizeOp(std::string_view name, Filter filter) : name_(name), filter_(filter) {}

  Result<void> apply(OpContext& context) const final {
    const double drawn = draw(context.draws);
    return follow_by_size(context, [&](Size before) {
      const Size to = resized(before, drawn);
      return resized_to(name_, before, to.height, to.width, filter_);
    });
  }

 protected:
  virtual double draw(Draws& draws) const = 0;
  virtual Size resized(Size before, double drawn) const = 0;
  // Truncated to whole pixels, but at least 1.
  static int pixels(double exact) {
    return static_cast<int>(std::clamp(exact, 1.0, static_cast<double>(1 << 30)));
  }

 private:
  void plan_picture(FieldState& picture) const final {
    check_filter(name_, filter_, picture);
    picture.shape[1] = picture.shape[2] = -1;
  }

  const std::string_view name_;
  const Filter filter_;
};

class RandomResize final : public RandomSizeOp {
 public:
  RandomResize(int64_t least, int64_t below, Filter filter)
      : RandomSizeOp("RandomResize", filter), least_(least), below_(below) {}

  static std::unique_ptr<Op> make(const Arguments& arguments) {
    const int64_t least = arguments.integer("min_size"), below = arguments.integer("max_size");
    if (least >= below) {
      raise_invalid_argument("RandomResize",
                             "max_size is exclusive and must be larger than min_size",
                             "Resize(size) is for one size");
    }
    return std::make_unique<RandomResize>(least, below, filter_from("RandomResize", arguments));
  }

 private:
  double draw(Draws& draws) const override {
    return static_cast<double>(least_ + draws.below(below_ - least_));
  }
  Size resized(Size before, double shorter) const override {
    const auto [low, high] = std::minmax(before.height, before.width);
    const int longer = pixels(shorter * high / low);
    const int short_edge = static_cast<int>(shorter);
    return before.width <= before.height ? Size{longer, short_edge} : Size{short_edge, longer};
  }
  const int64_t least_, below_;
};

class RandomShortestSize final : public RandomSizeOp {
 public:
  RandomShortestSize(std::vector<int64_t> sizes, int64_t most, Filter filter)
      : RandomSizeOp("RandomShortestSize", filter), sizes_(std::move(sizes)), most_(most) {}

  static std::unique_ptr<Op> make(const Arguments& arguments) {
    return std::make_unique<RandomShortestSize>(
        arguments.integers("min_size"),
        arguments.is_none("max_size") ? 0 : arguments.integer("max_size"),
        filter_from("RandomShortestSize", arguments));
  }

 private:
  double draw(Draws& draws) const override {
    return static_cast<double>(sizes_[size_t(draws.below(std::ssize(sizes_)))]);
  }
  Size resized(Size before, double shortest) const override {
    const auto [low, high] = std::minmax(before.height, before.width);
    double scale = shortest / low;
    if (most_ > 0) scale = std::min(scale, static_cast<double>(most_) / high);
    return {pixels(before.height * scale), pixels(before.width * scale)};
  }
  const std::vector<int64_t> sizes_;
  const int64_t most_;  // 0: no limit
};

class ScaleJitter final : public RandomSizeOp {
 public:
  ScaleJitter(std::vector<int64_t> target, std::vector<double> range, Filter filter)
      : RandomSizeOp("ScaleJitter", filter), target_(std::move(target)), range_(std::move(range)) {}

  static std::unique_ptr<Op> make(const Arguments& arguments) {
    const std::vector<double>& range = arguments.numbers("scale_range");
    if (range[0] > range[1]) {
      raise_invalid_argument("ScaleJitter", "scale_range must be (smallest, largest)");
    }
    return std::make_unique<ScaleJitter>(arguments.integers("target_size"), range,
                                         filter_from("ScaleJitter", arguments));
  }

 private:
  double draw(Draws& draws) const override { return draws.uniform(range_[0], range_[1]); }
  Size resized(Size before, double drawn) const override {
    const double wide = static_cast<double>(target_[0]) / before.width;
    const double high = static_cast<double>(target_[1]) / before.height;
    // As in torch, the draw and its factors are float32.
    const float scale = static_cast<float>(std::min(wide, high)) * static_cast<float>(drawn);
    return {pixels(static_cast<float>(before.height) * scale),
            pixels(static_cast<float>(before.width) * scale)};
  }
  const std::vector<int64_t> target_;
  const std::vector<double> range_;
};

Param edge(std::string_view name, std::string_view doc) {
  return {.name = name,
          .type = ParamType::kInt,
          .doc = doc,
          .required = true,
          .minimum = 1,
          .maximum = 1 << 16};
}

const OpRecord kRandomResize{
    .name = "RandomResize",
    .doc =
        "Resizes a record's images by their shorter edge, to a random size.\n\n"
        "Images and masks, (C, H, W), any dtype; the dtype is unchanged. Every whole number "
        "from min_size to max_size - 1 is equally probable; the other edge keeps the aspect "
        "ratio.",
    .page = {.section = "Detection transforms", .step = "T.RandomResize(60, 180)"},
    .params = {edge("min_size", "Minimum length of the shorter edge, in pixels."),
               edge("max_size", "Exclusive upper limit, as in torchvision."), interpolation_param(),
               antialias_param()},
    .oracle =
        "Pillow's resize, or torch's interpolate(antialias=False) on tensors, bit for bit; sizes "
        "as "
        "torchvision v2's in distribution",
    .example = {{"min_size", int64_t{4}}, {"max_size", int64_t{9}}},
    .random = true,
    .make = RandomResize::make};
const Register<OpRecord> registered_random_resize(kRandomResize);

const OpRecord kRandomShortestSize{
    .name = "RandomShortestSize",
    .doc =
        "Resizes a record's images so that the shorter edge has one of several sizes.\n\n"
        "Images and masks, (C, H, W), any dtype; the dtype is unchanged. Each size is equally "
        "probable; the longer edge is at most max_size.",
    .page = {.section = "Detection transforms", .step = "T.RandomShortestSize([60, 90, 120, 150])"},
    .params = {{.name = "min_size",
                .type = ParamType::kInts,
                .doc = "The sizes in pixels, or a single one.",
                .required = true,
                .minimum = 1,
                .maximum = 1 << 16,
                .min_count = 1},
               {.name = "max_size",
                .type = ParamType::kInt,
                .doc = "Maximum length of the longer edge, in pixels; None: no limit.",
                .minimum = 1,
                .maximum = 1 << 16},
               interpolation_param(),
               antialias_param()},
    .oracle =
        "Pillow's resize, or torch's interpolate(antialias=False) on tensors, bit for bit; sizes "
        "as "
        "torchvision v2's in distribution",
    .example = {{"min_size", std::vector<int64_t>{4, 6, 9}}, {"max_size", int64_t{8}}},
    .random = true,
    .make = RandomShortestSize::make};
const Register<OpRecord> registered_random_shortest(kRandomShortestSize);

const OpRecord kScaleJitter{
    .name = "ScaleJitter",
    .doc =
        "Resizes a record's images to a random multiple of the size that fits into a target "
        "(large scale jitter).\n\n"
        "Images and masks, (C, H, W), any dtype; the dtype is unchanged. The scale at which the "
        "image just fits into the target is multiplied by a number that is uniform in "
        "scale_range.",
    .page = {.section = "Detection transforms", .step = "T.ScaleJitter((200, 200), (0.4, 1.2))"},
    .params =
        {{.name = "target_size",
          .type = ParamType::kInts,
          .doc = "(width, height) in pixels: torchvision's order for this transform, unlike every "
                 "other size.",
          .required = true,
          .minimum = 1,
          .maximum = 1 << 16,
          .min_count = 2,
          .max_count = 2},
         {.name = "scale_range",
          .type = ParamType::kFloats,
          .doc = "Smallest and largest multiple.",
          .fallback = std::vector<double>{0.1, 2.0},
          .minimum = 1e-6,
          .maximum = 1000,
          .min_count = 2,
          .max_count = 2},
         interpolation_param(),
         antialias_param()},
    .oracle =
        "Pillow's resize, or torch's interpolate(antialias=False) on tensors, bit for bit; sizes "
        "as "
        "torchvision v2's in distribution",
    .example = {{"target_size", std::vector<int64_t>{9, 12}}},
    .random = true,
    .make = ScaleJitter::make};
const Register<OpRecord> registered_scale_jitter(kScaleJitter);

}  // namespace
}  // namespace headrace
