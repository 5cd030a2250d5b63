// SPDX-License-Identifier: Apache-2.0
// RandomResizedCropToSequence: a window of random area and aspect ratio, resized to whole patches,
// at most as many as a sequence may have (NaFlex).
#include <limits>

#include "headrace/base/registry.h"
#include "headrace/ops/geometry/random_window.h"
#include "headrace/ops/patches/sequence_size.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

constexpr std::string_view kCropToSequence = "RandomResizedCropToSequence";

class RandomResizedCropToSequence final : public PictureOp {
 public:
  RandomResizedCropToSequence(const Sequence& sequence, std::array<double, 2> scale,
                              std::array<double, 2> ratio, Filter filter)
      : sequence_(sequence), scale_(scale), ratio_(ratio), filter_(filter) {}

  Result<void> apply(OpContext& context) const override {
    Result<Size> size = common_size(context);
    if (!size) return std::move(size.error());
    const double of_picture = static_cast<double>(size->width) / size->height;
    const RandomWindowParams params(scale_, {ratio_[0] * of_picture, ratio_[1] * of_picture});
    const Window window = random_window(*size, params, context.draws);
    const PatchedSize to = size_for_sequence(sequence_, window.height, window.width);
    const Size from{window.height, window.width};
    Result<Geometry> resized = resized_to(kCropToSequence, from, to.height, to.width, filter_,
                                          "use a smaller max_seq_len");
    if (!resized) return std::move(resized.error());
    const Size target{static_cast<int>(to.height), static_cast<int>(to.width)};
    return follow(context, Geometry().crop(window).resize(target, filter_));
  }

 private:
  void plan_picture(FieldState& picture) const override {
    check_filter(kCropToSequence, filter_, picture);
    picture.shape[1] = picture.shape[2] = -1;
    picture.left_open_by = "RandomResizedCropToSequence, whose crops differ in aspect ratio";
  }

  const Sequence sequence_;
  const std::array<double, 2> scale_, ratio_;
  const Filter filter_;
};

std::unique_ptr<Op> make_crop_to_sequence(const Arguments& arguments) {
  const std::vector<double>&scale = arguments.numbers("scale"), &ratio = arguments.numbers("ratio");
  if (scale[0] > scale[1])
    raise_invalid_argument(kCropToSequence, "scale must be (smallest, largest)");
  if (ratio[0] > ratio[1])
    raise_invalid_argument(kCropToSequence, "ratio must be (smallest, largest)");
  const Sequence sequence{arguments.integer("patch_size"), arguments.integer("max_seq_len"),
                          std::numeric_limits<double>::infinity()};
  return std::make_unique<RandomResizedCropToSequence>(sequence, std::array{scale[0], scale[1]},
                                                       std::array{ratio[0], ratio[1]},
                                                       filter_from(kCropToSequence, arguments));
}

const OpRecord kRandomResizedCropToSequence{
    .name = kCropToSequence,
    .doc =
        "Crops a random part of a record's images and resizes it to whole patches (NaFlex).\n\n"
        "Images and masks, (C, H, W), any dtype, become (C, h, w), both multiples of patch_size, "
        "with at most max_seq_len patches; the dtype is unchanged. All images of a record must "
        "have the same size. The window's fraction of the area is uniform in scale, and its width "
        "/ height that of the image times a factor that is log-uniform in ratio; after ten draws "
        "that do not fit, the largest central window with an allowed ratio is used. The window's "
        "aspect ratio is kept up to the rounding.",
    .page = {.section = "Native resolution",
             .step = "T.RandomResizedCropToSequence(patch_size=16, max_seq_len=64)"},
    .params = {sequence_patch_param(),
               max_seq_len_param(),
               {.name = "scale",
                .type = ParamType::kFloats,
                .doc = "Smallest and largest fraction of the image's area.",
                .fallback = std::vector<double>{0.08, 1.0},
                .minimum = 0,
                .maximum = 1e6,
                .min_count = 2,
                .max_count = 2},
               {.name = "ratio",
                .type = ParamType::kFloats,
                .doc = "Smallest and largest factor by which the window's width / height differs "
                       "from the image's.",
                .fallback = std::vector<double>{0.8, 1.25},
                .minimum = 1e-6,
                .maximum = 1e6,
                .min_count = 2,
                .max_count = 2},
               interpolation_param(),
               antialias_param()},
    .oracle =
        "sizes as timm's get_image_size_for_seq, pixels as Pillow's crop and resize, bit for bit; "
        "windows as timm's RandomResizedCropToSequence in distribution",
    .example = {{"patch_size", int64_t{4}}, {"max_seq_len", int64_t{12}}},
    .random = true,
    .make = make_crop_to_sequence};
const Register<OpRecord> registered_random_resized_crop_to_sequence(kRandomResizedCropToSequence);

}  // namespace
}  // namespace headrace
