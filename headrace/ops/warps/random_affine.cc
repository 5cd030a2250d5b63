// SPDX-License-Identifier: Apache-2.0
// RandomAffine: rotates, translates, scales and shears images at random.
#include <cmath>

#include "headrace/base/registry.h"
#include "headrace/ops/warps/warp_op.h"

namespace headrace {
namespace {

constexpr std::string_view kAffine = "RandomAffine";

class RandomAffine final : public WarpOp {
 public:
  explicit RandomAffine(const Arguments& arguments)
      : WarpOp(kAffine, arguments),
        degrees_(angles_from(kAffine, "degrees", arguments.numbers("degrees"))),
        center_(center_from(arguments)) {
    if (!arguments.is_none("translate")) {
      translate_ = {arguments.numbers("translate")[0], arguments.numbers("translate")[1]};
    }
    if (!arguments.is_none("scale")) {
      scale_ = angles_from(kAffine, "scale", arguments.numbers("scale"));
    }
    if (!arguments.is_none("shear")) take_shear(arguments.numbers("shear"));
  }

  // All pictures of a record move by the same fraction of their size.
  Result<void> apply(OpContext& context) const override {
    Draws& draws = context.draws;
    AffineArguments by{.center = center_};
    by.angle = draws.uniform(degrees_[0], degrees_[1]);
    const std::array<double, 2> shares{draws.uniform(-1, 1), draws.uniform(-1, 1)};
    by.scale = scale_[0] < scale_[1] ? draws.uniform(scale_[0], scale_[1]) : scale_[0];
    by.shear = {draws.uniform(shear_[0], shear_[1]), draws.uniform(shear_[2], shear_[3])};
    return follow_by_size(context, [&](Size canvas) {
      by.translate = {whole(shares[0] * translate_[0] * canvas.width),
                      whole(shares[1] * translate_[1] * canvas.height)};
      return geometry_of(affine_warp(by, canvas, style()), canvas);
    });
  }

 private:
  void take_shear(const std::vector<double>& given) {
    if (given.size() == 3)
      raise_invalid_argument(kAffine, "shear must have one, two or four numbers");
    const std::array<double, 2> along_x =
        angles_from(kAffine, "shear", {given.begin(), given.begin() + (given.size() > 1 ? 2 : 1)});
    shear_ = {along_x[0], along_x[1], 0, 0};
    if (given.size() < 4) return;
    const std::array<double, 2> along_y = angles_from(kAffine, "shear", {given[2], given[3]});
    shear_[2] = along_y[0];
    shear_[3] = along_y[1];
  }
  static double whole(double pixels) { return std::nearbyint(pixels); }

  const std::array<double, 2> degrees_;
  const std::optional<std::array<double, 2>> center_;
  std::array<double, 2> translate_{}, scale_{1, 1};
  std::array<double, 4> shear_{};
};

const OpRecord kRandomAffine{
    .name = "RandomAffine",
    .doc =
        "Rotates, translates, scales and shears a record's images at random.\n\n"
        "Images and masks, (C, H, W), uint8; shape and dtype are unchanged. Earlier transforms are "
        "rendered first, which adds a pass over the image; only translations by whole pixels and "
        "rotations by multiples of 90 degrees are free. Boxes become the bounding boxes of their "
        "moved corners, clipped at the image's edge.",
    .page = {.section = "Warping transforms",
             .step = "T.RandomAffine(15, scale=(0.7, 1.1), shear=15, interpolation=\"bilinear\")"},
    .params = with_warp_params(
        {{.name = "degrees",
          .type = ParamType::kFloats,
          .doc = "x: an angle from [-x, x], clockwise; or (smallest, largest).",
          .required = true,
          .minimum = -1e6,
          .maximum = 1e6,
          .min_count = 1,
          .max_count = 2},
         {.name = "translate",
          .type = ParamType::kFloats,
          .doc = "(a, b): maximum horizontal and vertical shift, as fractions of width and height; "
                 "shifts are whole pixels.",
          .minimum = 0,
          .maximum = 1,
          .min_count = 2,
          .max_count = 2},
         {.name = "scale",
          .type = ParamType::kFloats,
          .doc = "(smallest, largest) scale factor.",
          .minimum = 1e-4,
          .maximum = 1e4,
          .min_count = 2,
          .max_count = 2},
         {.name = "shear",
          .type = ParamType::kFloats,
          .doc = "Angles in degrees: x for [-x, x] along the x axis; (smallest, largest); or four "
                 "numbers for both axes.",
          .minimum = -1e6,
          .maximum = 1e6,
          .min_count = 1,
          .max_count = 4},
         center_param()},
        "nearest"),
    .oracle =
        "torchvision v2's affine on tensors, or on Pillow images, bit for bit; random "
        "parameters in distribution",
    .example = {{"degrees", int64_t{10}},
                {"translate", std::vector<double>{0.1, 0.2}},
                {"scale", std::vector<double>{0.8, 1.2}},
                {"shear", std::vector<double>{-5, 5, -3, 3}},
                {"center", std::vector<double>{9, 8}},
                {"fill", int64_t{9}},
                {"mask_fill", int64_t{1}}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<RandomAffine>(arguments);
    }};
const Register<OpRecord> registered_random_affine(kRandomAffine);

}  // namespace
}  // namespace headrace
