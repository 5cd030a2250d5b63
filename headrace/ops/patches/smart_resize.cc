// SPDX-License-Identifier: Apache-2.0
// SmartResize: resizes to multiples of a factor, with limits on the number of pixels (Qwen2-VL).
#include <algorithm>
#include <cmath>

#include "headrace/base/registry.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

const ErrorCode kTooNarrow{
    "HR0591", ErrorKind::kData, "image too narrow",
    "SmartResize keeps the aspect ratio, and rejects images with one edge more than 200 times as "
    "long as the other, as transformers does. Crop or drop them first."};

constexpr double kMaxAspect = 200;

struct PixelRange {
  int64_t factor, least, most;
};

struct FactorSize {
  int64_t height, width;
};

bool is_too_narrow(int64_t height, int64_t width) {
  const auto [low, high] = std::minmax(height, width);
  return low == 0 || static_cast<double>(high) / static_cast<double>(low) > kMaxAspect;
}

// transformers' smart_resize, with Python's rounding: halves go to the even number.
FactorSize smart_size(const PixelRange& range, int64_t height, int64_t width) {
  const auto factor = static_cast<double>(range.factor);
  const auto h = static_cast<double>(height), w = static_cast<double>(width);
  const auto times = [&](double count) { return static_cast<int64_t>(count) * range.factor; };
  FactorSize out{times(std::nearbyint(h / factor)), times(std::nearbyint(w / factor))};
  if (out.height * out.width > range.most) {
    const double beta = std::sqrt(h * w / static_cast<double>(range.most));
    out = {std::max(range.factor, times(std::floor(h / beta / factor))),
           std::max(range.factor, times(std::floor(w / beta / factor)))};
  } else if (out.height * out.width < range.least) {
    const double beta = std::sqrt(static_cast<double>(range.least) / (h * w));
    out = {times(std::ceil(h * beta / factor)), times(std::ceil(w * beta / factor))};
  }
  return out;
}

class SmartResize final : public PictureOp {
 public:
  SmartResize(const PixelRange& range, Filter filter) : range_(range), filter_(filter) {}

  Result<void> apply(OpContext& context) const override {
    return follow_by_size(context, [&](Size size) -> Result<Geometry> {
      if (is_too_narrow(size.height, size.width)) {
        return Error{.code = &kTooNarrow,
                     .what = "an image of " + text_of(size) + " is more than 200 to 1"};
      }
      const FactorSize to = smart_size(range_, size.height, size.width);
      return resized_to("SmartResize", size, to.height, to.width, filter_,
                        "use a smaller max_pixels");
    });
  }

 private:
  void plan_picture(FieldState& picture) const override {
    check_filter("SmartResize", filter_, picture);
    int64_t &height = picture.shape[1], &width = picture.shape[2];
    if (height >= 0 && width >= 0) {
      if (is_too_narrow(height, width)) {
        raise_invalid_argument("SmartResize", "an image of " + std::to_string(height) + " x " +
                                                  std::to_string(width) + " is more than 200 to 1");
      }
      const FactorSize to = smart_size(range_, height, width);
      height = to.height;
      width = to.width;
    } else {
      height = width = -1;
      picture.left_open_by = "SmartResize, which keeps the aspect ratio";
    }
  }

  const PixelRange range_;
  const Filter filter_;
};

std::unique_ptr<Op> make_smart_resize(const Arguments& arguments) {
  const PixelRange range{arguments.integer("factor"), arguments.integer("min_pixels"),
                         arguments.integer("max_pixels")};
  if (range.least > range.most) {
    raise_invalid_argument("SmartResize", "min_pixels must not be larger than max_pixels (got " +
                                              std::to_string(range.least) + " and " +
                                              std::to_string(range.most) + ")");
  }
  return std::make_unique<SmartResize>(range, filter_from("SmartResize", arguments));
}

const OpRecord kSmartResize{
    .name = "SmartResize",
    .doc =
        "Resizes a record's images to multiples of a factor, between min_pixels and max_pixels "
        "(Qwen2-VL).\n\n"
        "Images and masks, (C, H, W), any dtype, become (C, h, w), both multiples of factor; the "
        "dtype is unchanged. The aspect ratio is kept up to the rounding. An image that is more "
        "than 200 times as long as wide is a bad record (HR0591). factor is patch_size times "
        "merge_size of Patchify: 28 for Qwen2-VL, 32 for Qwen3-VL.",
    .page = {.section = "Native resolution",
             .step = "T.SmartResize(factor=28, max_pixels=140 * 140)"},
    .params = {{.name = "factor",
                .type = ParamType::kInt,
                .doc = "Both edges are rounded to multiples of this, in pixels.",
                .fallback = int64_t{28},
                .minimum = 1,
                .maximum = 1 << 14},
               {.name = "min_pixels",
                .type = ParamType::kInt,
                .doc = "Minimum number of pixels; smaller images are enlarged.",
                .fallback = int64_t{56 * 56},
                .minimum = 1,
                .maximum = 1 << 28},
               {.name = "max_pixels",
                .type = ParamType::kInt,
                .doc =
                    "Maximum number of pixels; larger images are reduced, but neither edge becomes "
                    "smaller than factor.",
                .fallback = int64_t{14 * 14 * 4 * 1280},
                .minimum = 1,
                .maximum = 1 << 28},
               interpolation_param(),
               antialias_param()},
    .oracle =
        "sizes as transformers' smart_resize (Qwen2-VL); pixels as Pillow's resize, bit for bit",
    .example = {{"factor", int64_t{4}}, {"min_pixels", int64_t{100}}, {"max_pixels", int64_t{200}}},
    .make = make_smart_resize};
const Register<OpRecord> registered_smart_resize(kSmartResize);

}  // namespace
}  // namespace headrace
