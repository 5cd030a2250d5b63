// SPDX-License-Identifier: Apache-2.0
// PadIfSmaller: pads smaller images to a size, on the right and at the bottom.
#include <algorithm>

#include "headrace/base/registry.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

class PadIfSmaller final : public PictureOp {
 public:
  PadIfSmaller(Size size, std::vector<double> fill, std::vector<double> mask_fill)
      : size_(size), fill_(std::move(fill)), mask_fill_(std::move(mask_fill)) {}

  Result<void> apply(OpContext& context) const override {
    Result<Size> canvas = canvas_of(context);
    if (!canvas) return std::move(canvas.error());
    for (const int field : context.fields) {
      const FieldValue& value = context.record.fields[field];
      const Size size = is_picture(value.kind) ? value.picture.size() : *canvas;
      const Borders borders{0, 0, std::max(0, size_.width - size.width),
                            std::max(0, size_.height - size.height)};
      if (borders == Borders{}) continue;
      const Geometry geometry = Geometry().pad(borders, border_of(value.kind, fill_, mask_fill_));
      if (Result<void> done = follow(context, field, size, geometry); !done) return done;
    }
    return {};
  }

 private:
  void plan_picture(FieldState& picture) const override {
    check_border("PadIfSmaller", fill_, mask_fill_, picture);
    int64_t &height = picture.shape[1], &width = picture.shape[2];
    if (height >= 0) height = std::max<int64_t>(height, size_.height);
    if (width >= 0) width = std::max<int64_t>(width, size_.width);
  }

  const Size size_;
  const std::vector<double> fill_, mask_fill_;
};

const OpRecord kPadIfSmaller{
    .name = "PadIfSmaller",
    .doc =
        "Adds borders on the right and at the bottom to images that are smaller than a size.\n\n"
        "Images and masks, (C, H, W), any dtype; H and W become at least size; the dtype is "
        "unchanged. torchvision's segmentation reference does this before a RandomCrop, whose "
        "pad_if_needed adds borders on both sides.",
    .page = {.unseen = "large images are unchanged"},
    .params = {size_param(),
               {.name = "fill",
                .type = ParamType::kFloats,
                .doc = "The borders' value: one number, or one per channel, in the range of the "
                       "image's dtype at this point (0 to 255 for uint8).",
                .fallback = int64_t{0},
                .min_count = 1,
                .max_count = kMaxChannels},
               own_mask_fill_param()},
    .oracle = "Pillow's ImageOps.expand, bit for bit; as torchvision's pad",
    .example = {{"size", std::vector<int64_t>{29, 31}},
                {"fill", int64_t{7}},
                {"mask_fill", int64_t{3}}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<PadIfSmaller>(size_from(arguments.integers("size")),
                                            arguments.numbers("fill"), own_mask_fill(arguments));
    }};
const Register<OpRecord> registered_pad_if_smaller(kPadIfSmaller);

}  // namespace
}  // namespace headrace
