// SPDX-License-Identifier: Apache-2.0
// PillowGaussianBlur: the blur of Pillow's ImageFilter, with a random radius.
#include <memory>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/ops/filters/blurs.h"
#include "headrace/ops/picture_op.h"
#include "headrace/ops/pixel_op.h"

namespace headrace {
namespace {

class PillowGaussianBlur final : public WholeImageOp {
 public:
  PillowGaussianBlur(double least, double most)
      : WholeImageOp("PillowGaussianBlur"), least_(least), most_(most) {}

  Result<void> apply(OpContext& context) const override {
    const double radius = least_ < most_ ? context.draws.uniform(least_, most_) : least_;
    return transform_images(context, [&](const Picture& in, Picture& out) -> Result<void> {
      blur_as_pillow(in, radius, out);
      return {};
    });
  }

 private:
  void plan_image(FieldState& image) const override { plan_pixels(false, image); }
  const double least_, most_;
};

const OpRecord kPillowGaussianBlur{
    .name = "PillowGaussianBlur",
    .doc =
        "Blurs an image as Pillow's ImageFilter.GaussianBlur does, by a random radius.\n\n"
        "Images of one or three channels, (C, H, W), uint8; shape and dtype are unchanged, and "
        "so are masks. It applies three integer box filters along each axis: the time does not "
        "depend on the radius, and images of any size work. For torchvision's filter, see "
        "GaussianBlur. Earlier transforms are rendered first, which adds a pass over the image.",
    .page = {.section = "Sharpness, blur and noise", .step = "T.PillowGaussianBlur(3.0)"},
    .params = {{.name = "radius",
                .type = ParamType::kFloats,
                .doc = "Standard deviation in pixels, or a range to draw it from.",
                .fallback = std::vector<double>{0.1, 2.0},
                .minimum = 0,
                .maximum = 1e3,
                .min_count = 1,
                .max_count = 2}},
    .oracle = "Pillow's ImageFilter.GaussianBlur, bit for bit",
    .example = {{"radius", std::vector<double>{0.5, 3.0}}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      const std::vector<double>& radius = arguments.numbers("radius");
      if (radius.front() > radius.back()) {
        raise_invalid_argument("PillowGaussianBlur",
                               "radius must be one number, or (smallest, largest)");
      }
      return std::make_unique<PillowGaussianBlur>(radius.front(), radius.back());
    }};
const Register<OpRecord> registered_pillow_gaussian_blur(kPillowGaussianBlur);

}  // namespace
}  // namespace headrace
