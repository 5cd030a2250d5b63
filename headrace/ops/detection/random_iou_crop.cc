// SPDX-License-Identifier: Apache-2.0
// RandomIoUCrop: a random window with enough overlap with a box. It is drawn from the boxes and the
// picture's size, before decoding, so that only the window is decoded.
#include <algorithm>
#include <optional>

#include "headrace/base/registry.h"
#include "headrace/fields/boxes.h"
#include "headrace/ops/row_op.h"

namespace headrace {
namespace {

// torchvision retries forever if no window qualifies and no option keeps the picture.
constexpr int kMaxOptionDraws = 200;

struct IoUCropParams {
  double min_scale, max_scale, min_ratio, max_ratio;
  std::vector<double> options;
  int64_t trials;
};

struct IoUWindow {
  Window window;
  std::vector<bool> inside;  // by box: whether its center is inside
};

// The boxes whose center is in the window, if one of them overlaps it enough.
template <class Number>
std::optional<std::vector<bool>> boxes_inside(const std::vector<Number>& corners,
                                              const Window& window, double least) {
  using Real = RealOf<Number>;
  const auto left = static_cast<Real>(window.x), top = static_cast<Real>(window.y);
  const auto right = static_cast<Real>(window.x + window.width);
  const auto bottom = static_cast<Real>(window.y + window.height);
  std::vector<bool> inside;
  bool any = false;
  for (size_t at = 0; at + 4 <= corners.size(); at += 4) {
    const Number* const box = &corners[at];
    const Real x = Real(0.5) * static_cast<Real>(plus(box[0], box[2]));
    const Real y = Real(0.5) * static_cast<Real>(plus(box[1], box[3]));
    inside.push_back(left < x && x < right && top < y && y < bottom);
    if (!inside.back()) continue;
    const Real wide = static_cast<Real>(minus(box[2], box[0]));
    const Real high = static_cast<Real>(minus(box[3], box[1]));
    const Real common_wide =
        std::min(static_cast<Real>(box[2]), right) - std::max(static_cast<Real>(box[0]), left);
    const Real common_high =
        std::min(static_cast<Real>(box[3]), bottom) - std::max(static_cast<Real>(box[1]), top);
    const Real common = std::max(Real(0), common_wide) * std::max(Real(0), common_high);
    const Real both = wide * high + (right - left) * (bottom - top) - common;
    any |= common / both >= static_cast<Real>(least);
  }
  return any ? std::optional(std::move(inside)) : std::nullopt;
}

// One trial of torchvision's loop.
template <class Number>
std::optional<IoUWindow> tried_window(const std::vector<Number>& corners, Size picture,
                                      const IoUCropParams& params, double least, Draws& draws) {
  const int width =
      static_cast<int>(picture.width * draws.uniform(params.min_scale, params.max_scale));
  const int height =
      static_cast<int>(picture.height * draws.uniform(params.min_scale, params.max_scale));
  if (width < 1 || height < 1) return {};
  const double ratio = static_cast<double>(width) / height;
  if (ratio < params.min_ratio || ratio > params.max_ratio) return {};
  const int left = static_cast<int>((picture.width - width) * draws.uniform());
  const int top = static_cast<int>((picture.height - height) * draws.uniform());
  const Window window{left, top, width, height};
  std::optional<std::vector<bool>> inside = boxes_inside(corners, window, least);
  if (!inside) return {};
  return IoUWindow{window, std::move(*inside)};
}

template <class Number>
std::optional<IoUWindow> drawn_window(const std::vector<Number>& corners, Size picture,
                                      const IoUCropParams& params, Draws& draws) {
  // If no box center is inside the picture (NaN), no window can qualify: avoids an endless loop.
  if (!boxes_inside(corners, {0, 0, picture.width, picture.height}, 0)) return {};
  for (int option = 0; option < kMaxOptionDraws; ++option) {
    const double least = params.options[size_t(draws.below(std::ssize(params.options)))];
    if (least >= 1) return {};
    for (int64_t trial = 0; trial < params.trials; ++trial) {
      std::optional<IoUWindow> drawn = tried_window(corners, picture, params, least, draws);
      if (drawn) return drawn;
    }
  }
  return {};
}

class RandomIoUCrop final : public PictureOp {
 public:
  RandomIoUCrop(IoUCropParams params, bool drops) : params_(std::move(params)), drops_(drops) {}
  bool changes_rows() const override { return drops_; }
  bool decides_by(FieldKind kind) const override { return kind == FieldKind::kBoxes; }
  std::string cannot_move(const FieldState& follower) const override {
    return why_not_rotated("RandomIoUCrop", follower);
  }

  Result<void> apply(OpContext& context) const override {
    FieldValue* const boxes = deciding_rows(context, FieldKind::kBoxes);
    if (!boxes) return {};  // no rows when called by Plan::passes
    Result<Size> size = common_size(context);
    if (!size) return std::move(size.error());
    std::optional<IoUWindow> drawn;
    look_at_coordinates(*boxes, [&](auto corners) {
      for (size_t at = 0; at + 4 <= corners.size(); at += 4) {
        convert_box(&corners[at], boxes->box_format, BoxFormat::kXYXY);
      }
      drawn = drawn_window(corners, *size, params_, context.draws);
    });
    if (!drawn) return {};
    if (drops_) keep_rows(context, drawn->inside);
    Result<void> done = follow(context, Geometry().crop(drawn->window));
    if (done && !drops_) clear_rows(*boxes, drawn->inside);
    return done;
  }

 private:
  void plan_picture(FieldState& picture) const override {
    picture.shape[1] = picture.shape[2] = -1;
  }

  static void clear_rows(FieldValue& boxes, const std::vector<bool>& kept) {
    change_coordinates(boxes, [&](auto numbers) {
      for (size_t at = 0; at < numbers.size(); ++at) {
        if (!kept[at / 4]) numbers[at] = 0;
      }
    });
  }

  const IoUCropParams params_;
  const bool drops_;
};

std::unique_ptr<Op> make_random_iou_crop(const Arguments& arguments) {
  constexpr std::string_view kName = "RandomIoUCrop";
  IoUCropParams params{arguments.number("min_scale"),        arguments.number("max_scale"),
                       arguments.number("min_aspect_ratio"), arguments.number("max_aspect_ratio"),
                       arguments.numbers("sampler_options"), arguments.integer("trials")};
  if (params.min_scale > params.max_scale) {
    raise_invalid_argument(kName, "min_scale must not be larger than max_scale");
  }
  if (params.min_ratio > params.max_ratio) {
    raise_invalid_argument(kName, "min_aspect_ratio must not be larger than max_aspect_ratio");
  }
  return std::make_unique<RandomIoUCrop>(std::move(params), arguments.text("outside") == "drop");
}

Param number(std::string_view name, std::string_view doc, double fallback, double most) {
  return {.name = name,
          .type = ParamType::kFloat,
          .doc = doc,
          .fallback = fallback,
          .minimum = 1e-6,
          .maximum = most};
}

const OpRecord kRandomIoUCrop{
    .name = "RandomIoUCrop",
    .doc =
        "Crops a record's images to a random window that overlaps a box enough (SSD's crop).\n\n"
        "Images and masks, (C, H, W), any dtype, of the same size, with boxes in pixels, (rows, "
        "4). An IoU is drawn from sampler_options; 1 or more leaves the image unchanged. Then "
        "windows are drawn until one contains the center of a box with at least that IoU; after "
        "`trials` windows another IoU is drawn. An image without boxes is unchanged. Boxes whose "
        "center is outside of the window are dropped, with the rows that belong to them. The "
        "window is drawn before decoding, and only the window is decoded.",
    .page = {.section = "Detection transforms",
             .step = "T.RandomIoUCrop(sampler_options=[0.1, 0.3, 0.5])"},
    .params =
        {number("min_scale", "Smallest fraction of the image's width and height.", 0.3, 1),
         number("max_scale", "Largest fraction of the image's width and height.", 1.0, 1),
         number("min_aspect_ratio", "The smallest width / height of the window.", 0.5, 1e6),
         number("max_aspect_ratio", "The largest width / height of the window.", 2.0, 1e6),
         {.name = "sampler_options",
          .type = ParamType::kFloats,
          .doc = "Minimum IoUs; one of them is drawn.",
          .fallback = std::vector<double>{0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0},
          .minimum = 0,
          .maximum = 1e6,
          .min_count = 1},
         {.name = "trials",
          .type = ParamType::kInt,
          .doc = "Number of windows to try per IoU.",
          .fallback = int64_t{40},
          .minimum = 1,
          .maximum = 10000},
         {.name = "outside",
          .type = ParamType::kString,
          .doc = "What to do with boxes whose center is outside: \"drop\" removes their rows; "
                 "\"zero\" makes them 0, 0, 0, 0 as torchvision does, for a SanitizeBoundingBoxes "
                 "later in the list.",
          .fallback = std::string("drop"),
          .choices = {"drop", "zero"}}},
    .oracle =
        "torchvision v2's RandomIoUCrop: windows in distribution, rows of the same window bit for "
        "bit",
    .example = {{"sampler_options", std::vector<double>{0.3, 0.5}}},
    .random = true,
    .make = make_random_iou_crop};
const Register<OpRecord> registered_random_iou_crop(kRandomIoUCrop);

}  // namespace
}  // namespace headrace
