// SPDX-License-Identifier: Apache-2.0
// Letterbox: the whole picture, resized to fit, centered on a canvas of one size (YOLO).
#include <algorithm>
#include <cmath>

#include "headrace/base/registry.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

struct Box {
  Size size;   // maximum size of the picture
  int stride;  // 0: the canvas has `size`; otherwise the smallest multiples of it that fit
  bool enlarges, centered;
};

// Sizes of the picture and of the border around it.
struct Placed {
  Size picture;
  Borders borders;
};

// Like Python's round(): ties to even.
int rounded_pixels(double exact) {
  return std::max(1, static_cast<int>(std::nearbyint(std::min(exact, double(1 << 30)))));
}

Placed placed_in(const Box& box, Size from) {
  double scale = std::min(static_cast<double>(box.size.height) / from.height,
                          static_cast<double>(box.size.width) / from.width);
  if (!box.enlarges) scale = std::min(scale, 1.0);
  Placed placed;
  placed.picture = {rounded_pixels(from.height * scale), rounded_pixels(from.width * scale)};
  const auto free = [&](int whole, int taken) {
    return box.stride > 0 ? (whole - taken) % box.stride : whole - taken;
  };
  const int wide = free(box.size.width, placed.picture.width);
  const int high = free(box.size.height, placed.picture.height);
  const int left = box.centered ? wide / 2 : 0, top = box.centered ? high / 2 : 0;
  placed.borders = {left, top, wide - left, high - top};
  return placed;
}

class Letterbox final : public PictureOp {
 public:
  Letterbox(const Box& box, std::vector<double> fill, double mask_fill, Filter filter)
      : box_(box), fill_(std::move(fill)), mask_fill_{mask_fill}, filter_(filter) {}

  Result<void> apply(OpContext& context) const override {
    Result<Size> canvas = canvas_of(context);
    if (!canvas) return std::move(canvas.error());
    for (const int field : context.fields) {
      const FieldValue& value = context.record.fields[field];
      const Size size = is_picture(value.kind) ? value.picture.size() : *canvas;
      const Placed placed = placed_in(box_, size);
      Geometry geometry;
      geometry.resize(placed.picture, filter_);
      if (placed.borders != Borders{})
        geometry.pad(placed.borders, border_of(value.kind, fill_, mask_fill_));
      if (Result<void> done = follow(context, field, size, geometry); !done) return done;
    }
    return {};
  }

 private:
  void plan_picture(FieldState& picture) const override {
    check_filter("Letterbox", filter_, picture);
    check_border("Letterbox", fill_, mask_fill_, picture);
    int64_t &height = picture.shape[1], &width = picture.shape[2];
    if (box_.stride == 0) {
      height = box_.size.height;
      width = box_.size.width;
    } else if (height >= 0 && width >= 0) {
      const Placed placed = placed_in(box_, {static_cast<int>(height), static_cast<int>(width)});
      height = placed.picture.height + placed.borders.top + placed.borders.bottom;
      width = placed.picture.width + placed.borders.left + placed.borders.right;
    } else {
      height = width = -1;
      picture.left_open_by = "Letterbox with stride, which pads only to a multiple of it";
    }
  }

  const Box box_;
  const std::vector<double> fill_, mask_fill_;
  const Filter filter_;
};

std::unique_ptr<Op> make_letterbox(const Arguments& arguments) {
  const Box box{size_from(arguments.integers("size")),
                static_cast<int>(arguments.integer("stride")), arguments.flag("scaleup"),
                arguments.flag("center")};
  if (box.stride > 0 && (box.size.height % box.stride || box.size.width % box.stride)) {
    raise_invalid_argument("Letterbox", "size must be a multiple of stride",
                           "stride=0 pads every image to size");
  }
  return std::make_unique<Letterbox>(box, arguments.numbers("fill"), arguments.number("mask_fill"),
                                     filter_from("Letterbox", arguments));
}

const OpRecord kLetterbox{
    .name = "Letterbox",
    .doc =
        "Resizes a record's images to fit into a size and pads the rest (YOLO's input).\n\n"
        "Images and masks, (C, H, W), any dtype, become (C, size[0], size[1]); the dtype is "
        "unchanged. Both edges are scaled by one factor and rounded; the image is centered, "
        "with the odd border pixel on the right and at the bottom. With stride, edges are "
        "padded only to the next multiple of it, so sizes differ.",
    .page = {.section = "Detection transforms", .step = "T.Letterbox((150, 150))"},
    .params = {{.name = "size",
                .type = ParamType::kInts,
                .doc = "Size in pixels: one number for a square, or (height, width).",
                .fallback = int64_t{640},
                .minimum = 1,
                .maximum = 1 << 16,
                .min_count = 1,
                .max_count = 2},
               {.name = "stride",
                .type = ParamType::kInt,
                .doc = "If not 0, edges are padded to multiples of this (Ultralytics' auto=True) "
                       "instead of to size.",
                .fallback = int64_t{0},
                .minimum = 0,
                .maximum = 1 << 16},
               {.name = "fill",
                .type = ParamType::kFloats,
                .doc = "Fill value around the image: one number, or one per channel, in "
                       "the range of the image's dtype at this point (0 to 255 for uint8).",
                .fallback = int64_t{114},
                .min_count = 1,
                .max_count = kMaxChannels},
               mask_fill_param(),
               {.name = "scaleup",
                .type = ParamType::kBool,
                .doc = "Whether small images are enlarged; otherwise they are only padded.",
                .fallback = true},
               {.name = "center",
                .type = ParamType::kBool,
                .doc = "Whether the image is centered; otherwise it is at the top left.",
                .fallback = true},
               interpolation_param(),
               antialias_param()},
    .oracle =
        "Pillow's resize and ImageOps.expand, bit for bit; sizes and positions as in "
        "Ultralytics' LetterBox, whose pixels differ: OpenCV's resize does not antialias when "
        "an image shrinks",
    .example = {{"size", std::vector<int64_t>{32, 64}},
                {"stride", int64_t{16}},
                {"mask_fill", 7.0}},
    .make = make_letterbox};
const Register<OpRecord> registered_letterbox(kLetterbox);

}  // namespace
}  // namespace headrace
