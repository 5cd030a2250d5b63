// SPDX-License-Identifier: Apache-2.0
// ResizeToSequence: resizes to whole patches, at most as many as a sequence may have (NaFlex).
#include <limits>

#include "headrace/base/registry.h"
#include "headrace/ops/patches/sequence_size.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

class ResizeToSequence final : public PictureOp {
 public:
  ResizeToSequence(const Sequence& sequence, Filter filter)
      : sequence_(sequence), filter_(filter) {}

  Result<void> apply(OpContext& context) const override {
    return follow_by_size(context, [&](Size size) {
      const PatchedSize to = size_for_sequence(sequence_, size.height, size.width);
      return resized_to("ResizeToSequence", size, to.height, to.width, filter_,
                        "use a smaller max_seq_len, or max_ratio=1");
    });
  }

 private:
  void plan_picture(FieldState& picture) const override {
    check_filter("ResizeToSequence", filter_, picture);
    int64_t &height = picture.shape[1], &width = picture.shape[2];
    if (height >= 0 && width >= 0) {
      const PatchedSize to = size_for_sequence(sequence_, height, width);
      height = to.height;
      width = to.width;
    } else {
      height = width = -1;
      picture.left_open_by = "ResizeToSequence, which keeps the aspect ratio";
    }
  }

  const Sequence sequence_;
  const Filter filter_;
};

const OpRecord kResizeToSequence{
    .name = "ResizeToSequence",
    .doc =
        "Resizes a record's images to whole patches, at most max_seq_len of them (NaFlex).\n\n"
        "Images and masks, (C, H, W), any dtype, become (C, h, w), both multiples of patch_size; "
        "the dtype is unchanged. The aspect ratio is kept up to the rounding; small images are "
        "enlarged, unless max_ratio=1. Use it before Patchify, or for networks that accept native "
        "resolutions.",
    .page = {.section = "Native resolution",
             .step = "T.ResizeToSequence(patch_size=16, max_seq_len=64)"},
    .params = {sequence_patch_param(),
               max_seq_len_param(),
               {.name = "max_ratio",
                .type = ParamType::kFloat,
                .doc = "Maximum factor by which an image is enlarged. None: 100.",
                .minimum = 1e-4,
                .maximum = 100},
               interpolation_param(),
               antialias_param()},
    .oracle =
        "sizes as timm's ResizeToSequence and, without max_ratio, transformers' "
        "Siglip2ImageProcessor; pixels as Pillow's resize, bit for bit",
    .example = {{"patch_size", int64_t{4}}, {"max_seq_len", int64_t{12}}, {"max_ratio", 0.9}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      const double ratio = arguments.is_none("max_ratio") ? std::numeric_limits<double>::infinity()
                                                          : arguments.number("max_ratio");
      return std::make_unique<ResizeToSequence>(
          Sequence{arguments.integer("patch_size"), arguments.integer("max_seq_len"), ratio},
          filter_from("ResizeToSequence", arguments));
    }};
const Register<OpRecord> registered_resize_to_sequence(kResizeToSequence);

}  // namespace
}  // namespace headrace
