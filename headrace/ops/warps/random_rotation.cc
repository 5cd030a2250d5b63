// SPDX-License-Identifier: Apache-2.0
// RandomRotation: rotates images by a random angle.
#include "headrace/base/registry.h"
#include "headrace/ops/warps/warp_op.h"

namespace headrace {
namespace {

class RandomRotation final : public WarpOp {
 public:
  explicit RandomRotation(const Arguments& arguments)
      : WarpOp("RandomRotation", arguments),
        degrees_(angles_from(name(), "degrees", arguments.numbers("degrees"))),
        expand_(arguments.flag("expand")),
        center_(center_from(arguments)) {}

  Result<void> apply(OpContext& context) const override {
    const double angle = context.draws.uniform(degrees_[0], degrees_[1]);
    return follow_by_size(context, [&](Size canvas) {
      return geometry_of(rotation_warp(angle, expand_, center_, canvas, style()), canvas);
    });
  }

 private:
  void plan_picture(FieldState& picture) const override {
    WarpOp::plan_picture(picture);
    if (!expand_) return;
    if (degrees_[0] == degrees_[1] && picture.shape[1] >= 0 && picture.shape[2] >= 0) {
      const Size size{static_cast<int>(picture.shape[1]), static_cast<int>(picture.shape[2])};
      const Size to = rotation_warp(degrees_[0], true, center_, size, style()).to;
      picture.shape[1] = to.height;
      picture.shape[2] = to.width;
      return;
    }
    picture.shape[1] = picture.shape[2] = -1;
    picture.left_open_by = "RandomRotation with expand=True, whose size depends on the angle";
  }

  const std::array<double, 2> degrees_;
  const bool expand_;
  const std::optional<std::array<double, 2>> center_;
};

const OpRecord kRandomRotation{
    .name = "RandomRotation",
    .doc =
        "Rotates a record's images by a random angle.\n\n"
        "Images and masks, (C, H, W), uint8; the dtype is unchanged, and so is the shape unless "
        "expand=True. Earlier transforms are rendered first, which adds a pass over the image; "
        "only rotations by multiples of 90 degrees are free. Boxes become the bounding boxes of "
        "their rotated corners, clipped at the image's edge.",
    .page = {.section = "Warping transforms", .step = "T.RandomRotation((20, 30))"},
    .params = with_warp_params(
        {{.name = "degrees",
          .type = ParamType::kFloats,
          .doc = "x: an angle from [-x, x], counterclockwise; or (smallest, largest).",
          .required = true,
          .minimum = -1e6,
          .maximum = 1e6,
          .min_count = 1,
          .max_count = 2},
         {.name = "expand",
          .type = ParamType::kBool,
          .doc = "Whether to enlarge the output so that it contains the whole rotated image.",
          .fallback = false},
         center_param()},
        "nearest"),
    .oracle =
        "torchvision v2's rotate on tensors, or on Pillow images, bit for bit; angles in "
        "distribution",
    .example = {{"degrees", int64_t{30}},
                {"expand", true},
                {"center", std::vector<double>{4, 3}},
                {"fill", int64_t{9}},
                {"mask_fill", int64_t{1}}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<RandomRotation>(arguments);
    }};
const Register<OpRecord> registered_random_rotation(kRandomRotation);

}  // namespace
}  // namespace headrace
