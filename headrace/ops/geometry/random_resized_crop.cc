// SPDX-License-Identifier: Apache-2.0
// RandomResizedCrop: a window of random area and aspect ratio, resized to a fixed size (the
// "Inception" crop).
#include "headrace/base/registry.h"
#include "headrace/ops/geometry/random_window.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

class RandomResizedCrop final : public PictureOp {
 public:
  RandomResizedCrop(Size size, const RandomWindowParams& params, Filter filter)
      : size_(size), params_(params), filter_(filter) {}

  Result<void> apply(OpContext& context) const override {
    Result<Size> size = common_size(context);
    if (!size) return std::move(size.error());
    const Window window = random_window(*size, params_, context.draws);
    return follow(context, Geometry().crop(window).resize(size_, filter_));
  }

 private:
  void plan_picture(FieldState& picture) const override {
    check_filter("RandomResizedCrop", filter_, picture);
    picture.shape = {picture.shape[0], size_.height, size_.width};
  }

  const Size size_;
  const RandomWindowParams params_;
  const Filter filter_;
};

std::unique_ptr<Op> make_random_resized_crop(const Arguments& arguments) {
  constexpr std::string_view kName = "RandomResizedCrop";
  const std::vector<double>&scale = arguments.numbers("scale"), &ratio = arguments.numbers("ratio");
  if (scale[0] > scale[1]) raise_invalid_argument(kName, "scale must be (smallest, largest)");
  if (ratio[0] > ratio[1]) raise_invalid_argument(kName, "ratio must be (smallest, largest)");
  return std::make_unique<RandomResizedCrop>(
      size_from(arguments.integers("size")),
      RandomWindowParams({scale[0], scale[1]}, {ratio[0], ratio[1]}),
      filter_from(kName, arguments));
}

const OpRecord kRandomResizedCrop{
    .name = "RandomResizedCrop",
    .doc =
        "Crops the same random part of all of a record's images and resizes it.\n\n"
        "Images and masks, (C, H, W), any dtype, become (C, size[0], size[1]); the dtype is "
        "unchanged. All images of a record must have the same size. The window's fraction of the "
        "area is uniform in scale, its width / height log-uniform in ratio; after ten draws that "
        "do not fit, the largest central window with an allowed ratio is used.",
    .page = {.section = "Geometric transforms", .step = "T.RandomResizedCrop((150, 150))"},
    .params = {size_param("Pixels after the resize: one number for a square, or (height, width)."),
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
                .doc = "Smallest and largest width / height of the window.",
                .fallback = std::vector<double>{3.0 / 4.0, 4.0 / 3.0},
                .minimum = 1e-6,
                .maximum = 1e6,
                .min_count = 2,
                .max_count = 2},
               interpolation_param(),
               antialias_param()},
    .oracle =
        "Pillow's crop and resize, or torch's interpolate(antialias=False) on tensors, bit "
        "for bit; windows as torchvision v2's in distribution",
    .example = {{"size", std::vector<int64_t>{3, 4}}},
    .random = true,
    .make = make_random_resized_crop};
const Register<OpRecord> registered_random_resized_crop(kRandomResizedCrop);

}  // namespace
}  // namespace headrace
