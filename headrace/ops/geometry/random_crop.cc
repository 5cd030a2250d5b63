// SPDX-License-Identifier: Apache-2.0
// RandomCrop: a window of a fixed size at a random position, after optional padding.
#include <algorithm>

#include "headrace/base/registry.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

class RandomCrop final : public PictureOp {
 public:
  RandomCrop(Size size, Borders borders, bool pad_if_needed, std::vector<double> fill,
             std::vector<double> mask_fill, Padding padding)
      : size_(size),
        borders_(borders),
        pad_if_needed_(pad_if_needed),
        fill_(std::move(fill)),
        mask_fill_(std::move(mask_fill)),
        padding_(padding) {}
  bool measures() const override { return repeats(); }
  std::string cannot_move(const FieldState& follower) const override {
    return repeats() ? why_not_padded(padding_, follower) : std::string();
  }

  Result<void> apply(OpContext& context) const override {
    Result<Size> size = common_size(context);
    if (!size) return std::move(size.error());
    const Borders borders = borders_for(*size);
    const int free_y = size->height + borders.top + borders.bottom - size_.height;
    const int free_x = size->width + borders.left + borders.right - size_.width;
    if (free_y < 0 || free_x < 0) return too_small("RandomCrop", *size, size_, kHint);
    const int y = static_cast<int>(context.draws.below(free_y + 1));
    const int x = static_cast<int>(context.draws.below(free_x + 1));
    // As in torchvision, boxes that are not cropped are not clamped either.
    return follow_by_kind(context, [&](FieldKind kind) {
      Geometry geometry;
      if (borders != Borders{}) {
        geometry.pad(borders, border_of(kind, fill_, mask_fill_), padding_);
      }
      if (free_y > 0 || free_x > 0) geometry.crop({x, y, size_.width, size_.height});
      return geometry;
    });
  }

 private:
  // Whether it may add borders that repeat the picture.
  bool repeats() const {
    return padding_ != Padding::kConstant && (pad_if_needed_ || borders_ != Borders{});
  }

  static constexpr const char* kHint =
      "pad_if_needed=True pads such images; Resize before the crop makes them larger";

  // As in torchvision, a picture that is too small is padded by the missing pixels on both sides.
  Borders borders_for(Size size) const {
    Borders borders = borders_;
    if (!pad_if_needed_) return borders;
    const int high = std::max(0, size_.height - (size.height + borders.top + borders.bottom));
    const int wide = std::max(0, size_.width - (size.width + borders.left + borders.right));
    borders.top += high;
    borders.bottom += high;
    borders.left += wide;
    borders.right += wide;
    return borders;
  }

  void plan_picture(FieldState& picture) const override {
    check_border("RandomCrop", fill_, mask_fill_, picture);
    const int64_t height = picture.shape[1], width = picture.shape[2];
    const bool too_low = height >= 0 && height + borders_.top + borders_.bottom < size_.height;
    const bool too_narrow = width >= 0 && width + borders_.left + borders_.right < size_.width;
    if (!pad_if_needed_ && (too_low || too_narrow)) {
      raise_invalid_argument(
          "RandomCrop", "the crop is larger than \"" + picture.name + "\" is at this point", kHint);
    }
    picture.shape = {picture.shape[0], size_.height, size_.width};
  }

  const Size size_;
  const Borders borders_;
  const bool pad_if_needed_;
  const std::vector<double> fill_, mask_fill_;
  const Padding padding_;
};

std::unique_ptr<Op> make_random_crop(const Arguments& arguments) {
  const Borders borders = arguments.is_none("padding")
                              ? Borders{}
                              : borders_from("RandomCrop", arguments.integers("padding"));
  return std::make_unique<RandomCrop>(size_from(arguments.integers("size")), borders,
                                      arguments.flag("pad_if_needed"), arguments.numbers("fill"),
                                      own_mask_fill(arguments),
                                      padding_from(arguments.text("padding_mode")));
}

const OpRecord kRandomCrop{
    .name = "RandomCrop",
    .doc =
        "Crops a record's images at a random position, the same for all of them.\n\n"
        "Images and masks, (C, H, W), any dtype, become (C, size[0], size[1]); the dtype is "
        "unchanged. All images of a record must have the same size. Every position is equally "
        "probable. An image that is smaller than the crop is a data error unless pad_if_needed.",
    .page = {.section = "Geometric transforms", .step = "T.RandomCrop((120, 150))"},
    .params = {size_param(),
               {.name = "padding",
                .type = ParamType::kInts,
                .doc = "Padding before the crop: one number for all; two for "
                       "left/right and top/bottom; four for left, top, right, bottom.",
                .minimum = 0,
                .maximum = 1 << 16,
                .min_count = 1,
                .max_count = 4},
               {.name = "pad_if_needed",
                .type = ParamType::kBool,
                .doc = "Whether an image that is too small is padded by "
                       "the missing pixels on both sides.",
                .fallback = false},
               {.name = "fill",
                .type = ParamType::kFloats,
                .doc = "The borders' value: one number, or one per channel, in the range of the "
                       "image's dtype at this point (0 to 255 for uint8).",
                .fallback = int64_t{0},
                .min_count = 1,
                .max_count = kMaxChannels},
               own_mask_fill_param(),
               padding_mode_param()},
    .oracle =
        "Pillow's ImageOps.expand and crop, or numpy.pad's modes, bit for bit; positions as "
        "torchvision v2's in distribution",
    .example = {{"size", std::vector<int64_t>{4, 3}},
                {"padding", int64_t{2}},
                {"pad_if_needed", true},
                {"fill", int64_t{7}},
                {"mask_fill", int64_t{3}}},
    .random = true,
    .make = make_random_crop};
const Register<OpRecord> registered_random_crop(kRandomCrop);

}  // namespace
}  // namespace headrace
