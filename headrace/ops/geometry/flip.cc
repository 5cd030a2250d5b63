// SPDX-License-Identifier: Apache-2.0
// RandomHorizontalFlip and RandomVerticalFlip: mirror the pictures of a record, with a probability.
#include "headrace/base/registry.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

// `mirror` is the member of Geometry for the direction.
template <Geometry& (Geometry::*mirror)()>
class RandomFlip final : public PictureOp {
 public:
  explicit RandomFlip(double p) : p_(p) {}
  DevicePart device_part() const override {
    return mirror == &Geometry::flip_horizontal ? DevicePart::kFlip : DevicePart::kNone;
  }

  // One draw per record, so that its image, mask and boxes stay aligned.
  Result<void> apply(OpContext& context) const override {
    if (!context.draws.coin(p_)) return {};
    Geometry geometry;
    return follow(context, (geometry.*mirror)());
  }

  static std::unique_ptr<Op> make(const Arguments& arguments) {
    return std::make_unique<RandomFlip>(arguments.number("p"));
  }

 private:
  const double p_;
};

std::vector<Param> params() {
  return {{.name = "p",
           .type = ParamType::kFloat,
           .doc = "Probability of mirroring a record.",
           .fallback = 0.5,
           .minimum = 0,
           .maximum = 1}};
}

const OpRecord kRandomHorizontalFlip{
    .name = "RandomHorizontalFlip",
    .doc =
        "Mirrors a record's images left to right with probability p, all of them or none.\n\n"
        "Images and masks, (C, H, W), any dtype; shape and dtype are unchanged.",
    .page = {.section = "Geometric transforms", .step = "T.RandomHorizontalFlip(1.0)"},
    .params = params(),
    .oracle = "Pillow's transpose(FLIP_LEFT_RIGHT), bit for bit",
    .random = true,
    .make = RandomFlip<&Geometry::flip_horizontal>::make};
const Register<OpRecord> registered_horizontal(kRandomHorizontalFlip);

const OpRecord kRandomVerticalFlip{
    .name = "RandomVerticalFlip",
    .doc =
        "Mirrors a record's images top to bottom with probability p, all of them or none.\n\n"
        "Images and masks, (C, H, W), any dtype; shape and dtype are unchanged.",
    .page = {.section = "Geometric transforms", .step = "T.RandomVerticalFlip(1.0)"},
    .params = params(),
    .oracle = "Pillow's transpose(FLIP_TOP_BOTTOM), bit for bit",
    .random = true,
    .make = RandomFlip<&Geometry::flip_vertical>::make};
const Register<OpRecord> registered_vertical(kRandomVerticalFlip);

}  // namespace
}  // namespace headrace
