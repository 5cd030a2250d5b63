// SPDX-License-Identifier: Apache-2.0
// ConvertBoundingBoxFormat: the meaning of a box's four numbers; pixels, or fractions of the image.
#include <functional>

#include "headrace/base/registry.h"
#include "headrace/fields/boxes.h"
#include "headrace/fields/rotated_box.h"
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
    if (is_rotated(boxes.box_format) != is_rotated(to_)) {
      raise_invalid_argument(
          "ConvertBoundingBoxFormat",
          "rotated boxes cannot be converted to upright ones or vice versa, but \"" + boxes.name +
              "\" is " + std::string(name_of(boxes.box_format)),
          "a Python transform can choose the upright box");
    }
    const bool shares = is_normalized(boxes.box_format) || is_normalized(to_);
    if (shares && !is_floating(boxes.dtype)) {
      raise_invalid_argument(
          "ConvertBoundingBoxFormat",
          "normalized boxes are fractions, but \"" + boxes.name + "\" is " + text_of(boxes),
          "float32 or float64 boxes");
    }
    boxes.box_format = to_;
    boxes.shape.back() = numbers_of(to_);
  }

  void convert(FieldValue& boxes, Size canvas) const {
    const BoxFormat from = boxes.box_format;
    if (is_rotated(from)) return convert_turned(boxes, canvas);
    change_coordinates(boxes, [&]<class Number>(std::span<Number> numbers) {
      for (size_t at = 0; at + 4 <= numbers.size(); at += 4) {
        Number* const box = &numbers[at];
        if (is_normalized(from)) each_extent(box, 4, canvas, std::multiplies<>());
        convert_box(box, of_pixels(from), of_pixels(to_));
        if (is_normalized(to_)) each_extent(box, 4, canvas, std::divides<>());
      }
    });
    boxes.box_format = to_;
  }

  // The result has more numbers per box, or fewer.
  void convert_turned(FieldValue& boxes, Size canvas) const {
    const BoxFormat from = boxes.box_format;
    const auto before = size_t(numbers_of(from)), after = size_t(numbers_of(to_));
    look_at_coordinates(boxes, [&]<class Number>(std::vector<Number>& numbers) {
      if constexpr (std::is_floating_point_v<Number>) {
        Buffer made(numbers.size() / before * after * sizeof(Number));
        auto* to = reinterpret_cast<Number*>(made.data());
        for (size_t at = 0; at + before <= numbers.size(); at += before, to += after) {
          if (is_normalized(from)) each_extent(&numbers[at], 8, canvas, std::multiplies<>());
          convert_rotated(&numbers[at], of_pixels(from), to, of_pixels(to_));
          if (is_normalized(to_)) each_extent(to, 8, canvas, std::divides<>());
        }
        boxes.own(std::move(made));
      }
    });
    boxes.shape.back() = numbers_of(to_);
    boxes.box_format = to_;
  }

  template <class Number, class Change>
  static void each_extent(Number* box, int numbers, Size canvas, const Change& change) {
    for (int i = 0; i < numbers; ++i) {
      box[i] = change(box[i], static_cast<Number>(i % 2 == 0 ? canvas.width : canvas.height));
    }
  }

  const BoxFormat to_;
};

const OpRecord kConvertBoundingBoxFormat{
    .name = "ConvertBoundingBoxFormat",
    .doc =
        "Converts boxes to another format.\n\n"
        "Boxes, (..., 4), in a known format; shape and dtype are unchanged, and integers are "
        "rounded as torchvision rounds them. Rotated boxes have 5 or 8 numbers and remain "
        "rotated. Normalized boxes (xyxy_normalized and the like: 0 to 1 of the image's width "
        "and height at this point) are floats, and geometric transforms do not accept them: "
        "convert to pixels first, and back at the end.",
    .page = {.unseen = "it changes only boxes: [detection](detection.md)"},
    .params =
        {{.name = "format",
          .type = ParamType::kString,
          .doc =
              "xyxy: left, top, right, bottom; xywh: left, top, width, height; cxcywh: center, "
              "width, height; each relative to the image size with _normalized (YOLO's files "
              "are cxcywh_normalized). For rotated boxes: xywhr and cxcywhr, with an angle in "
              "degrees, and xyxyxyxy, the corners, which may be normalized (as in YOLO's files).",
          .required = true,
          .choices = {"xyxy", "xywh", "cxcywh", "xyxy_normalized", "xywh_normalized",
                      "cxcywh_normalized", "xywhr", "cxcywhr", "xyxyxyxy", "xyxyxyxy_normalized"}}},
    .oracle =
        "torchvision v2's convert_bounding_box_format, bit for bit, for rotated boxes except "
        "for the last bits of sines; normalization as NumPy's division and product in the "
        "boxes' dtype",
    .example = {{"format", std::string("cxcywh_normalized")}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<ConvertBoundingBoxFormat>(
          box_format_from_name(arguments.text("format")));
    }};
const Register<OpRecord> registered_convert_format(kConvertBoundingBoxFormat);

}  // namespace
}  // namespace headrace
