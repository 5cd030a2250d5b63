// SPDX-License-Identifier: Apache-2.0
// CornerCrop: a corner of a picture. Tested by tests/test_policies.py, in a FiveCrop.
#include "headrace/base/registry.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

constexpr std::string_view kCorner = "CornerCrop";

class CornerCrop final : public PictureOp {
 public:
  CornerCrop(Size size, const std::string& corner)
      : size_(size), right_(corner.ends_with("right")), bottom_(corner.starts_with("bottom")) {}

  Result<void> apply(OpContext& context) const override {
    return follow_by_size(context, [&](Size canvas) -> Result<Geometry> {
      const int free_x = canvas.width - size_.width, free_y = canvas.height - size_.height;
      if (free_x < 0 || free_y < 0)
        return too_small(kCorner, canvas, size_, "put a Resize before it");
      const Window window{right_ ? free_x : 0, bottom_ ? free_y : 0, size_.width, size_.height};
      return Geometry().crop(window);
    });
  }

 private:
  void plan_picture(FieldState& picture) const override {
    const int64_t height = picture.shape[1], width = picture.shape[2];
    if ((height >= 0 && height < size_.height) || (width >= 0 && width < size_.width)) {
      raise_invalid_argument(kCorner,
                             "the crop is larger than \"" + picture.name + "\" is at this point",
                             "put a Resize before it");
    }
    picture.shape = {picture.shape[0], size_.height, size_.width};
  }

  const Size size_;
  const bool right_, bottom_;
};

const OpRecord kCornerCrop{
    .name = "CornerCrop",
    .doc =
        "Crops a record's images at a corner.\n\n"
        "Images and masks, (C, H, W), any dtype, become (C, size[0], size[1]); the dtype is "
        "unchanged. A smaller image is an error (HR0502). FiveCrop and TenCrop are made of these.",
    .page = {.unseen = "see FiveCrop"},
    .params = {size_param(),
               {.name = "corner",
                .type = ParamType::kString,
                .doc = "The corner to crop at.",
                .fallback = std::string("top_left"),
                .choices = {"top_left", "top_right", "bottom_left", "bottom_right"}}},
    .oracle = "torchvision v2's five_crop, bit for bit",
    .example = {{"size", std::vector<int64_t>{5, 7}}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<CornerCrop>(size_from(arguments.integers("size")),
                                          arguments.text("corner"));
    }};
const Register<OpRecord> registered_corner_crop(kCornerCrop);

}  // namespace
}  // namespace headrace
