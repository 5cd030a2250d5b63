// SPDX-License-Identifier: Apache-2.0
// Pad: adds borders, of one color or repeating the image.
#include "headrace/base/registry.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

class Pad final : public PictureOp {
 public:
  Pad(Borders borders, std::vector<double> fill, std::vector<double> mask_fill, Padding padding)
      : borders_(borders),
        fill_(std::move(fill)),
        mask_fill_(std::move(mask_fill)),
        padding_(padding) {}
  bool measures() const override { return padding_ != Padding::kConstant; }
  std::string cannot_move(const FieldState& follower) const override {
    return why_not_padded(padding_, follower);
  }

  Result<void> apply(OpContext& context) const override {
    return follow_by_kind(context, [&](FieldKind kind) {
      return Geometry().pad(borders_, border_of(kind, fill_, mask_fill_), padding_);
    });
  }

 private:
  void plan_picture(FieldState& picture) const override {
    check_border("Pad", fill_, mask_fill_, picture);
    if (picture.shape[1] >= 0) picture.shape[1] += borders_.top + borders_.bottom;
    if (picture.shape[2] >= 0) picture.shape[2] += borders_.left + borders_.right;
  }

  const Borders borders_;
  const std::vector<double> fill_, mask_fill_;
  const Padding padding_;
};

const OpRecord kPad{
    .name = "Pad",
    .doc =
        "Adds borders to a record's images.\n\n"
        "Images and masks, (C, H, W), any dtype; H and W grow by the borders; the dtype is "
        "unchanged.",
    .page = {.section = "Geometric transforms",
             .step = "T.Pad(24, padding_mode=\"constant\", fill=90)"},
    .params = {{.name = "padding",
                .type = ParamType::kInts,
                .doc =
                    "Pixels: one number for all borders; two for left/right and top/bottom; four "
                    "for left, top, right, bottom.",
                .required = true,
                .minimum = 0,
                .maximum = 1 << 16,
                .min_count = 1,
                .max_count = 4},
               {.name = "fill",
                .type = ParamType::kFloats,
                .doc = "The border's value: one number, or one per channel, in the range of the "
                       "image's dtype at this point (0 to 255 for uint8).",
                .fallback = int64_t{0},
                .min_count = 1,
                .max_count = kMaxChannels},
               own_mask_fill_param(),
               padding_mode_param()},
    .oracle = "Pillow's ImageOps.expand, or numpy.pad's modes, bit for bit; as torchvision v2's",
    .example = {{"padding", std::vector<int64_t>{1, 2, 0, 3}},
                {"fill", int64_t{7}},
                {"mask_fill", int64_t{3}}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<Pad>(borders_from("Pad", arguments.integers("padding")),
                                   arguments.numbers("fill"), own_mask_fill(arguments),
                                   padding_from(arguments.text("padding_mode")));
    }};
const Register<OpRecord> registered_pad(kPad);

}  // namespace
}  // namespace headrace
