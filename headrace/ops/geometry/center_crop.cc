// SPDX-License-Identifier: Apache-2.0
// CenterCrop: the center of a picture, padded if the picture is too small.
#include <algorithm>
#include <cmath>

#include "headrace/base/registry.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

constexpr double kBlack[] = {0};

// torchvision's offset: Python's round(), ties to even.
int anchor(int picture, int crop) {
  return static_cast<int>(std::nearbyint((picture - crop) / 2.0));
}

class CenterCrop final : public PictureOp {
 public:
  explicit CenterCrop(Size size) : size_(size) {}

  Result<void> apply(OpContext& context) const override {
    return follow_by_size(context, [&](Size size) -> Result<Geometry> {
      const int wide = std::max(0, size_.width - size.width);
      const int high = std::max(0, size_.height - size.height);
      const Window window{anchor(size.width + wide, size_.width),
                          anchor(size.height + high, size_.height), size_.width, size_.height};
      Geometry geometry;
      // With an odd border, the extra pixel goes to the right and bottom.
      if (wide > 0 || high > 0) {
        geometry.pad({wide / 2, high / 2, (wide + 1) / 2, (high + 1) / 2}, kBlack);
      }
      // torchvision shifts and clamps boxes once: converting to center and size and back again
      // would change their last bits.
      const bool only_pads =
          (wide > 0 || high > 0) && size.width <= size_.width && size.height <= size_.height;
      return only_pads ? geometry : geometry.crop(window);
    });
  }

 private:
  void plan_picture(FieldState& picture) const override {
    picture.shape = {picture.shape[0], size_.height, size_.width};
  }

  const Size size_;
};

const OpRecord kCenterCrop{
    .name = "CenterCrop",
    .doc =
        "Crops a record's images at their center.\n\n"
        "Images and masks, (C, H, W), any dtype, become (C, size[0], size[1]); the dtype is "
        "unchanged. A smaller image is padded with 0 first, with the odd pixel on the right and at "
        "the bottom.",
    .page = {.section = "Geometric transforms", .step = "T.CenterCrop((120, 120))"},
    .params = {size_param()},
    .oracle = "torchvision v2's CenterCrop, bit for bit",
    .example = {{"size", std::vector<int64_t>{3, 4}}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<CenterCrop>(size_from(arguments.integers("size")));
    }};
const Register<OpRecord> registered_center_crop(kCenterCrop);

}  // namespace
}  // namespace headrace
