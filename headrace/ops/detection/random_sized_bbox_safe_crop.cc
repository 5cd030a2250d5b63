// SPDX-License-Identifier: Apache-2.0
// RandomSizedBBoxSafeCrop: a random window that contains all boxes, resized. Drawn before the
// picture is decoded, like RandomIoUCrop.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "headrace/base/registry.h"
#include "headrace/fields/boxes.h"
#include "headrace/ops/row_op.h"

namespace headrace {
namespace {

struct Corners {
  double left, top, right, bottom;
};

// The union of all valid boxes, clipped to the picture.
std::optional<Corners> union_of(const FieldValue& boxes, Size picture) {
  std::optional<Corners> all;
  look_at_coordinates(boxes, [&](auto numbers) {
    for (size_t at = 0; at + 4 <= numbers.size(); at += 4) {
      convert_box(&numbers[at], boxes.box_format, BoxFormat::kXYXY);
      std::array<double, 4> box;
      for (size_t i = 0; i < 4; ++i) box[i] = static_cast<double>(numbers[at + i]);
      if (!(box[2] >= box[0]) || !(box[3] >= box[1])) continue;
      for (size_t i = 0; i < 4; ++i) {
        const int extent = i % 2 == 0 ? picture.width : picture.height;
        box[i] = std::clamp(box[i], 0.0, static_cast<double>(extent));
      }
      if (!all) all = Corners{box[0], box[1], box[2], box[3]};
      all->left = std::min(all->left, box[0]);
      all->top = std::min(all->top, box[1]);
      all->right = std::max(all->right, box[2]);
      all->bottom = std::max(all->bottom, box[3]);
    }
  });
  return all;
}

// One axis: a start before `low` and an end after `high`, both uniform. Albumentations truncates
// the end to a whole pixel, cutting off up to a pixel of a box; we round up.
std::pair<int, int> range_around(double low, double high, double begin, double end, int extent) {
  low = std::clamp(low, 0.0, static_cast<double>(extent));
  high = std::clamp(high, low, static_cast<double>(extent));
  const int from = std::min(static_cast<int>(low * begin), extent - 1);
  const double exact = high + (extent - high) * end;
  const int to = std::max(static_cast<int>(std::ceil(exact)), from + 1);
  return {from, to - from};
}

class RandomSizedBBoxSafeCrop final : public PictureOp {
 public:
  RandomSizedBBoxSafeCrop(Size size, double erosion, Filter filter)
      : size_(size), erosion_(erosion), filter_(filter) {}
  bool decides_by(FieldKind kind) const override { return kind == FieldKind::kBoxes; }
  std::string cannot_move(const FieldState& follower) const override {
    return why_not_rotated("RandomSizedBBoxSafeCrop", follower);
  }

  Result<void> apply(OpContext& context) const override {
    Result<Size> size = common_size(context);
    if (!size) return std::move(size.error());
    std::array<double, 4> drawn;
    for (double& each : drawn) each = context.draws.uniform();
    const FieldValue* const boxes = deciding_rows(context, FieldKind::kBoxes);
    std::optional<Corners> all = boxes ? union_of(*boxes, *size) : std::nullopt;
    if (all) all = eroded(*all);
    const Window window = all ? window_around(*all, *size, drawn) : any_window(*size, drawn);
    return follow(context, Geometry().crop(window).resize(size_, filter_));
  }

 private:
  void plan_picture(FieldState& picture) const override {
    check_filter("RandomSizedBBoxSafeCrop", filter_, picture);
    picture.shape = {picture.shape[0], size_.height, size_.width};
  }

  std::optional<Corners> eroded(const Corners& all) const {
    const double x = (all.right - all.left) * erosion_ / 2;
    const double y = (all.bottom - all.top) * erosion_ / 2;
    const Corners less{all.left + x, all.top + y, all.right - x, all.bottom - y};
    const bool left_over = less.right - less.left > 1e-6 && less.bottom - less.top > 1e-6;
    return left_over ? std::optional(less) : std::nullopt;
  }

  static Window window_around(const Corners& all, Size size, const std::array<double, 4>& drawn) {
    const auto [x, width] = range_around(all.left, all.right, drawn[0], drawn[2], size.width);
    const auto [y, height] = range_around(all.top, all.bottom, drawn[1], drawn[3], size.height);
    return {x, y, width, height};
  }

  // Without boxes: the picture's aspect ratio, scaled down by as much as erosion_rate allows.
  Window any_window(Size size, const std::array<double, 4>& drawn) const {
    const int least = static_cast<int>(size.height * (1 - erosion_));
    const int more = static_cast<int>((size.height - least + 1) * drawn[0]);
    const int height = std::clamp(least + more, 1, size.height);
    const int width = std::clamp(
        static_cast<int>(static_cast<int64_t>(height) * size.width / size.height), 1, size.width);
    const int x = static_cast<int>((size.width - width + 1) * drawn[1]);
    const int y = static_cast<int>((size.height - height + 1) * drawn[2]);
    return {x, y, width, height};
  }

  const Size size_;
  const double erosion_;
  const Filter filter_;
};

const OpRecord kRandomSizedBBoxSafeCrop{
    .name = "RandomSizedBBoxSafeCrop",
    .doc =
        "Crops a record's images to a random window that contains all boxes, and resizes it.\n\n"
        "Images and masks, (C, H, W), any dtype, of the same size, with boxes in pixels, become "
        "(C, size[0], size[1]); the dtype is unchanged. On each axis the window begins anywhere "
        "before the first box and ends anywhere after the last one. No row is dropped. The crop of "
        "an image without boxes keeps the image's aspect ratio. The window is drawn before "
        "decoding, and only the window is decoded.",
    .page = {.section = "Detection transforms", .step = "T.RandomSizedBBoxSafeCrop((120, 160))"},
    .params =
        {size_param("Pixels after the resize: one number for a square, or (height, width)."),
         {.name = "erosion_rate",
          .type = ParamType::kFloat,
          .doc = "Fraction of the union of all boxes that may be cropped away, half on each side. "
                 "0: none.",
          .fallback = 0.0,
          .minimum = 0,
          .maximum = 1},
         interpolation_param(),
         antialias_param()},
    .oracle =
        "Pillow's crop and resize, bit for bit; windows as Albumentations' in distribution, except "
        "that theirs may cut up to a pixel off boxes at the right and the bottom",
    .example = {{"size", std::vector<int64_t>{9, 12}}, {"erosion_rate", 0.2}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<RandomSizedBBoxSafeCrop>(
          size_from(arguments.integers("size")), arguments.number("erosion_rate"),
          filter_from("RandomSizedBBoxSafeCrop", arguments));
    }};
const Register<OpRecord> registered_bbox_safe_crop(kRandomSizedBBoxSafeCrop);

}  // namespace
}  // namespace headrace
