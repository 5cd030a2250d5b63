// SPDX-License-Identifier: Apache-2.0
// RandomPerspective: shows a record's pictures as if seen from a random viewpoint.
#include "headrace/base/registry.h"
#include "headrace/image/torchvision_warps.h"
#include "headrace/ops/pixel_op.h"
#include "headrace/ops/warps/warp_op.h"

namespace headrace {
namespace {

class RandomPerspective final : public WarpOp {
 public:
  explicit RandomPerspective(const Arguments& arguments)
      : WarpOp("RandomPerspective", arguments),
        distortion_(arguments.number("distortion_scale")),
        p_(arguments.number("p")) {}

  Result<void> apply(OpContext& context) const override {
    if (!context.draws.coin(p_)) return {};
    std::array<double, 8> shares;  // how far each corner moves inward, x before y
    for (double& share : shares) share = context.draws.uniform();
    return follow_by_size(context, [&](Size canvas) -> Result<Geometry> {
      const std::optional<Warp> warp = perspective_warp(ends(shares, canvas), canvas, style());
      return warp ? geometry_of(*warp, canvas) : Geometry();
    });
  }

 private:
  Corners ends(const std::array<double, 8>& shares, Size canvas) const {
    const int wide = static_cast<int>(distortion_ * (canvas.width / 2)) + 1;
    const int high = static_cast<int>(distortion_ * (canvas.height / 2)) + 1;
    const auto x = [&](size_t i, bool right) {
      return int(shares[i] * wide) + (right ? canvas.width - wide : 0);
    };
    const auto y = [&](size_t i, bool low) {
      return int(shares[i] * high) + (low ? canvas.height - high : 0);
    };
    const auto corner = [&](size_t i, bool right, bool low) -> std::array<int, 2> {
      return {x(2 * i, right), y(2 * i + 1, low)};
    };
    return {corner(0, false, false), corner(1, true, false), corner(2, true, true),
            corner(3, false, true)};
  }

  const double distortion_, p_;
};

const OpRecord kRandomPerspective{
    .name = "RandomPerspective",
    .doc =
        "Applies a random perspective to a record's images, with probability p.\n\n"
        "Images and masks, (C, H, W), uint8; shape and dtype are unchanged. Earlier transforms "
        "are rendered first, which adds a pass over the image. Boxes become the bounding boxes "
        "of their moved corners, clipped at the image's edge. An image of one row or column is "
        "unchanged, and so is one with three corners that would become collinear.",
    .page = {.section = "Warping transforms", .step = "T.RandomPerspective(0.5, p=1.0)"},
    .params = with_warp_params(
        {{.name = "distortion_scale",
          .type = ParamType::kFloat,
          .doc = "How far corners move inwards: up to this fraction of half the width and height.",
          .fallback = 0.5,
          .minimum = 0,
          .maximum = 1},
         probability_param("Probability of warping a record.")},
        "bilinear"),
    .oracle =
        "torchvision v2's perspective on tensors, or on Pillow images, bit for bit for the "
        "same coefficients, which torchvision computes with rounding errors; corners in "
        "distribution",
    .example = {{"distortion_scale", 0.2}, {"fill", int64_t{9}}, {"mask_fill", int64_t{1}}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<RandomPerspective>(arguments);
    }};
const Register<OpRecord> registered_random_perspective(kRandomPerspective);

}  // namespace
}  // namespace headrace
