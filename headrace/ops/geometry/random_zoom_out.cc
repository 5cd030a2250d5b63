// SPDX-License-Identifier: Apache-2.0
// RandomZoomOut: the picture at a random position on a larger canvas.
#include <algorithm>

#include "headrace/base/registry.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

class RandomZoomOut final : public PictureOp {
 public:
  RandomZoomOut(std::vector<double> fill, double mask_fill, double least, double most, double p)
      : fill_(std::move(fill)), mask_fill_{mask_fill}, least_(least), most_(most), p_(p) {}

  Result<void> apply(OpContext& context) const override {
    Result<Size> size = common_size(context);
    if (!size) return std::move(size.error());
    const bool acts = context.draws.coin(p_);
    const double scale = context.draws.uniform(least_, most_);
    const double x = context.draws.uniform(), y = context.draws.uniform();
    if (!acts) return {};
    const auto larger = [&](int edge) { return static_cast<int>(std::min(edge * scale, 1e9)); };
    const Size canvas{larger(size->height), larger(size->width)};
    if (too_large(canvas.height, canvas.width)) {
      return result_too_large("RandomZoomOut", *size, canvas.height, canvas.width);
    }
    const int free_x = canvas.width - size->width, free_y = canvas.height - size->height;
    const int left = static_cast<int>(free_x * x), top = static_cast<int>(free_y * y);
    const Borders borders{left, top, free_x - left, free_y - top};
    for (const int field : context.fields) {
      const FieldKind kind = context.record.fields[field].kind;
      const Geometry geometry = Geometry().pad(borders, border_of(kind, fill_, mask_fill_));
      if (Result<void> done = follow(context, field, *size, geometry); !done) return done;
    }
    return {};
  }

 private:
  void plan_picture(FieldState& picture) const override {
    check_border("RandomZoomOut", fill_, mask_fill_, picture);
    if (most_ > 1) picture.shape[1] = picture.shape[2] = -1;
  }

  const std::vector<double> fill_, mask_fill_;
  const double least_, most_, p_;
};

std::unique_ptr<Op> make_random_zoom_out(const Arguments& arguments) {
  const std::vector<double>& range = arguments.numbers("side_range");
  if (range[0] > range[1]) {
    raise_invalid_argument("RandomZoomOut", "side_range must be (smallest, largest)");
  }
  return std::make_unique<RandomZoomOut>(arguments.numbers("fill"), arguments.number("mask_fill"),
                                         range[0], range[1], arguments.number("p"));
}

const OpRecord kRandomZoomOut{
    .name = "RandomZoomOut",
    .doc =
        "Puts a record's images at a random position on a larger canvas, with probability p (SSD's "
        "expansion).\n\n"
        "Images and masks, (C, H, W), any dtype, of the same size; both edges grow by one factor, "
        "uniform in side_range, and are truncated to whole pixels.",
    .page = {.section = "Detection transforms",
             .step = "T.RandomZoomOut(114, side_range=(1.5, 2.5), p=1.0)"},
    .params = {{.name = "fill",
                .type = ParamType::kFloats,
                .doc = "Fill value around the image: one number, or one per channel, in "
                       "the range of the image's dtype at this point (0 to 255 for uint8).",
                .fallback = int64_t{0},
                .min_count = 1,
                .max_count = kMaxChannels},
               mask_fill_param(),
               {.name = "side_range",
                .type = ParamType::kFloats,
                .doc = "Smallest and largest factor of the edges.",
                .fallback = std::vector<double>{1.0, 4.0},
                .minimum = 1,
                .maximum = 1000,
                .min_count = 2,
                .max_count = 2},
               {.name = "p",
                .type = ParamType::kFloat,
                .doc = "Probability of changing a record.",
                .fallback = 0.5,
                .minimum = 0,
                .maximum = 1}},
    .oracle =
        "Pillow's ImageOps.expand, bit for bit; canvases and positions as torchvision v2's in "
        "distribution",
    .example = {{"fill", int64_t{114}}, {"mask_fill", 7.0}},
    .random = true,
    .make = make_random_zoom_out};
const Register<OpRecord> registered_random_zoom_out(kRandomZoomOut);

}  // namespace
}  // namespace headrace
