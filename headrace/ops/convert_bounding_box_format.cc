// SPDX-License-Identifier: Apache-2.0
// ConvertBoundingBoxFormat: what the four numbers of a box are; pixels, or shares of the picture.
#include "headrace/base/registry.h"
#include "headrace/fields/box_format.h"
#include "headrace/ops/row_op.h"

namespace headrace {
namespace {

class ConvertBoundingBoxFormat final : public RowOp {
 public:
  explicit ConvertBoundingBoxFormat(BoxFormat to) : RowOp(FieldKind::kBoxes), to_(to) {}
  bool wants_canvas(const FieldState& field) const override {
    return field.kind == FieldKind::kBoxes && field.box_format != to_ &&
           (is_normalized(field.box_format) || is_normalized(to_));
  }

  Result<void> apply(OpContext& context) const override {
    std::optional<Size> canvas;
    for (const int field : context.fields) {
      FieldValue& boxes = context.record.fields[field];
      if (boxes.kind != FieldKind::kBoxes || boxes.box_format == to_) continue;
      if (!canvas && (is_normalized(boxes.box_format) || is_normalized(to_))) {
        Result<Size> common = common_size(context);
        if (!common) return std::move(common.error());
        canvas = *common;
      }
      convert(boxes, canvas.value_or(Size{}));
    }
    return {};
  }

 private:
  void plan_rows(FieldState& boxes) const override {
    FieldState in_pixels = boxes;
    in_pixels.box_format = of_pixels(boxes.box_format);
    check_boxes("ConvertBoundingBoxFormat", in_pixels);
    const bool shares = is_normalized(boxes.box_format) || is_normalized(to_);
    if (shares && !is_floating(boxes.dtype)) {
      raise_misfit(
          "ConvertBoundingBoxFormat",
          "shares of a picture are fractions, and \"" + boxes.name + "\" is " + text_of(boxes),
          "boxes of float32 or float64");
    }
    boxes.box_format = to_;
  }

  void convert(FieldValue& boxes, Size canvas) const {
    const BoxFormat from = boxes.box_format;
    change_coordinates(boxes, [&]<class Number>(std::span<Number> numbers) {
      for (size_t at = 0; at + 4 <= numbers.size(); at += 4) {
        Number* const box = &numbers[at];
        if (is_normalized(from)) each_extent(box, canvas, [](Number a, Number b) { return a * b; });
        convert_box(box, of_pixels(from), of_pixels(to_));
        if (is_normalized(to_)) each_extent(box, canvas, [](Number a, Number b) { return a / b; });
      }
    });
    boxes.box_format = to_;
  }

  template <class Number, class Change>
  static void each_extent(Number* box, Size canvas, const Change& change) {
    for (int i = 0; i < 4; ++i) {
      box[i] = change(box[i], static_cast<Number>(i % 2 == 0 ? canvas.width : canvas.height));
    }
  }

  const BoxFormat to_;
};

const OpRecord kConvertBoundingBoxFormat{
    .name = "ConvertBoundingBoxFormat",
    .doc =
        "Gives boxes in another format.\n\n"
        "Boxes, (..., 4), in a known format; shape and dtype stay, and integers are rounded as "
        "torchvision rounds them. Boxes of shares (xyxy_normalized and the like: 0 to 1 of the "
        "picture's width and height at this point) are floats, and no step moves them: this makes "
        "pixels of them before, and shares again in the end.",
    .params = {{.name = "format",
                .type = ParamType::kString,
                .doc = "xyxy: left, top, right, bottom; xywh: left, top, width, height; cxcywh: "
                       "centre, width, height; the same as shares of the picture with "
                       "_normalized (YOLO's files are cxcywh_normalized).",
                .required = true,
                .choices = {"xyxy", "xywh", "cxcywh", "xyxy_normalized", "xywh_normalized",
                            "cxcywh_normalized"}}},
    .oracle =
        "torchvision v2's convert_bounding_box_format, bit for bit; shares as NumPy's division and "
        "product in the boxes' dtype",
    .example = {{"format", std::string("cxcywh_normalized")}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<ConvertBoundingBoxFormat>(
          box_format_from_name(arguments.text("format")));
    }};
const Register<OpRecord> registered_convert_format(kConvertBoundingBoxFormat);

}  // namespace
}  // namespace headrace
