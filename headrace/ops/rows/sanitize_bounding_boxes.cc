// SPDX-License-Identifier: Apache-2.0
// SanitizeBoundingBoxes: drops degenerate boxes, with their labels and masks.
#include "headrace/base/registry.h"
#include "headrace/fields/boxes.h"
#include "headrace/fields/rotated_box.h"
#include "headrace/ops/row_op.h"

namespace headrace {
namespace {

class SanitizeBoundingBoxes final : public RowFilter {
 public:
  SanitizeBoundingBoxes(double min_size, double min_area, double min_visibility)
      : RowFilter(FieldKind::kBoxes),
        min_size_(min_size),
        min_area_(min_area),
        min_visibility_(min_visibility) {}
  bool wants_shares() const override { return min_visibility_ > 0; }

 private:
  void plan_rows(FieldState& boxes) const override {
    check_box_rows("SanitizeBoundingBoxes", boxes);
    if (wants_shares() && is_rotated(boxes.box_format)) {
      raise_invalid_argument("SanitizeBoundingBoxes",
                             "min_visibility works on upright boxes, but \"" + boxes.name +
                                 "\" is " + std::string(name_of(boxes.box_format)),
                             "min_area");
    }
  }

  std::vector<bool> kept(const FieldValue& boxes, Size canvas) const override {
    std::vector<bool> kept;
    look_at_coordinates(boxes, [&]<class Number>(std::vector<Number>& numbers) {
      if constexpr (std::is_floating_point_v<Number>) {
        if (is_rotated(boxes.box_format)) return rotated_kept(numbers, boxes, canvas, kept);
      }
      for (size_t at = 0; at + 4 <= numbers.size(); at += 4) {
        convert_box(&numbers[at], boxes.box_format, BoxFormat::kXYXY);
        kept.push_back(is_good(&numbers[at], canvas));
      }
    });
    for (size_t row = 0; row < boxes.shares.size() && wants_shares(); ++row) {
      kept[row] = kept[row] && boxes.shares[row] >= static_cast<float>(min_visibility_);
    }
    return kept;
  }

  // Comparisons with NaN are false.
  template <class Number>
  bool is_good(const Number* box, Size canvas) const {
    using Real = RealOf<Number>;
    const Number width = minus(box[2], box[0]), height = minus(box[3], box[1]);
    const Real least = static_cast<Real>(min_size_);
    bool good = static_cast<Real>(width) >= least && static_cast<Real>(height) >= least &&
                static_cast<Real>(times(width, height)) >= static_cast<Real>(min_area_);
    for (int i = 0; i < 4; ++i) {
      const auto most = static_cast<Number>(i % 2 == 0 ? canvas.width : canvas.height);
      good = good && box[i] >= 0 && box[i] <= most;
    }
    return good;
  }

  template <class Real>
  void rotated_kept(const std::vector<Real>& numbers, const FieldValue& boxes, Size canvas,
                    std::vector<bool>& kept) const {
    const auto step = static_cast<size_t>(numbers_of(boxes.box_format));
    for (size_t at = 0; at + step <= numbers.size(); at += step) {
      kept.push_back(is_good(corners_of_rotated(&numbers[at], boxes.box_format), canvas));
    }
  }

  // Uses the side's length where torchvision takes the height from x2 - x4 and y2 - x3.
  template <class Real>
  bool is_good(const BoxCorners<Real>& c, Size canvas) const {
    const Real width = std::hypot(c[0] - c[2], c[1] - c[3]);
    const Real height = std::hypot(c[2] - c[4], c[3] - c[5]);
    const Real least = static_cast<Real>(min_size_);
    bool good = width >= least && height >= least && width * height >= static_cast<Real>(min_area_);
    for (size_t i = 0; i < 8; ++i) {
      const auto most = static_cast<Real>(i % 2 == 0 ? canvas.width : canvas.height);
      good = good && c[i] >= 0 && c[i] <= most;
    }
    return good;
  }

  const double min_size_, min_area_, min_visibility_;
};

Param least(std::string_view name, std::string_view doc) {
  return {.name = name,
          .type = ParamType::kFloat,
          .doc = doc,
          .fallback = 1.0,
          .minimum = 1,
          .maximum = 1e9};
}

const OpRecord kSanitizeBoundingBoxes{
    .name = "SanitizeBoundingBoxes",
    .doc =
        "Drops boxes that are too small, outside the image, or invalid.\n\n"
        "Boxes in pixels, (rows, 4), or rotated boxes, in a known format. A row is kept if its box "
        "is at least min_size wide and high, has at least min_area, and has no corner outside of "
        "the image; boxes with NaN or negative sides are dropped. The other fields of the row "
        "group (labels, areas, masks, keypoints) lose the same rows; use fields= to name them if "
        "the source does not define row groups. Crops clamp boxes, so only boxes that were "
        "annotated beyond the edge are outside; put a ClampBoundingBoxes before this to keep "
        "those, too.",
    .page = {.unseen = "it drops rows: [detection](detection.md)"},
    .params = {least("min_size", "Minimum width and height of a box, in pixels."),
               least("min_area", "Minimum area of a box, in square pixels."),
               {.name = "min_visibility",
                .type = ParamType::kFloat,
                .doc =
                    "Minimum fraction of a box's original area that must remain after crops and "
                    "clipping at the "
                    "image's edges; 0 disables it. Boxes returned by a Python transform count as "
                    "whole again.",
                .fallback = 0.0,
                .minimum = 0,
                .maximum = 1}},
    .oracle =
        "torchvision v2's SanitizeBoundingBoxes, row for row; min_visibility and the height of "
        "rotated boxes, which torchvision computes from other coordinates, by their definition",
    .example = {{"min_size", 5.0}, {"min_visibility", 0.25}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<SanitizeBoundingBoxes>(arguments.number("min_size"),
                                                     arguments.number("min_area"),
                                                     arguments.number("min_visibility"));
    }};
const Register<OpRecord> registered_sanitize_boxes(kSanitizeBoundingBoxes);

}  // namespace
}  // namespace headrace
