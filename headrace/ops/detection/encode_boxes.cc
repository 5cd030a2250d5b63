// SPDX-License-Identifier: Apache-2.0
// EncodeBoxes: boxes and labels as training targets of a single-shot detector, one row per anchor
// (SSD's default boxes).
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "headrace/base/registry.h"
#include "headrace/fields/boxes.h"
#include "headrace/fields/rows.h"
#include "headrace/kernels/boxes/anchor_match.h"
#include "headrace/ops/row_op.h"

namespace headrace {
namespace {

const ErrorCode kTooManyRows{
    "HR0515", ErrorKind::kResource, "anchor rows exceed the memory limit",
    "EncodeBoxes gives each field of the row group one row per anchor; for masks or keypoints, "
    "that exceeds one record's share of memory_limit. Omit such fields from the batch, with the "
    "loader's fields=, or from the row group."};

using Quad = std::array<float, 4>;

class EncodeBoxes final : public RowOp {
 public:
  explicit EncodeBoxes(const Arguments& arguments)
      : RowOp(FieldKind::kBoxes),
        criteria_(static_cast<float>(arguments.number("criteria"))),
        offset_(arguments.flag("offset")),
        scale_(static_cast<float>(arguments.number("scale"))) {
    const std::vector<double>& anchors = arguments.numbers("anchors");
    if (anchors.size() % 4 != 0) {
      raise_invalid_argument("EncodeBoxes", "anchors must have four numbers each (got " +
                                                std::to_string(anchors.size()) + " in all)");
    }
    for (size_t at = 0; at < anchors.size(); at += 4) {
      Quad box;
      for (size_t i = 0; i < 4; ++i) box[i] = static_cast<float>(anchors[at + i]);
      if (!(box[2] > box[0]) || !(box[3] > box[1])) {
        raise_invalid_argument("EncodeBoxes", "anchor " + std::to_string(at / 4) +
                                                  " has no area: left, top, right, bottom");
      }
      anchors_.add(box[0], box[1], box[2], box[3]);
    }
    for (size_t i = 0; i < 4; ++i) {
      means_[i] = static_cast<float>(arguments.numbers("means")[i]);
      stds_[i] = static_cast<float>(arguments.numbers("stds")[i]);
    }
  }
  bool wants_canvas(const FieldState&) const override { return false; }
  bool changes_rows() const override { return true; }
  int64_t rows_after() const override { return static_cast<int64_t>(anchors_.size()); }
  bool decides_by(FieldKind kind) const override { return kind == FieldKind::kBoxes; }

  Result<void> apply(OpContext& context) const override {
    FieldValue* const boxes = deciding_rows(context, FieldKind::kBoxes);
    if (!boxes) return {};
    for (const int field : context.rows) {
      const Shape& shape = context.record.fields[field].shape;
      const auto row = static_cast<size_t>(element_count(Shape(shape.begin() + 1, shape.end())));
      if (row <= context.renderer.largest_value() / 8 / anchors_.size()) continue;
      return Error{
          .code = &kTooManyRows,
          .what = std::to_string(anchors_.size()) + " rows of " + std::to_string(row) + " numbers"};
    }
    std::vector<float> corners(boxes->bytes.size() / sizeof(float));
    if (!corners.empty()) std::memcpy(corners.data(), boxes->bytes.data(), boxes->bytes.size());
    for (size_t at = 0; at + 4 <= corners.size(); at += 4) {
      convert_box(&corners[at], of_pixels(boxes->box_format), BoxFormat::kXYXY);
    }
    const std::vector<int64_t> matches = matched(corners);
    for (const int field : context.rows) {
      FieldValue& value = context.record.fields[field];
      if (&value != boxes) take_rows(value, matches);
    }
    write(corners, matches, *boxes);
    return {};
  }

 private:
  void plan_rows(FieldState& boxes) const override {
    FieldState in_pixels = boxes;
    in_pixels.box_format = of_pixels(boxes.box_format);
    check_box_rows("EncodeBoxes", in_pixels);
    if (is_rotated(boxes.box_format)) {
      raise_invalid_argument("EncodeBoxes", why_not_rotated("it", boxes));
    }
    if (boxes.dtype != DType::kFloat32) {
      raise_invalid_argument("EncodeBoxes",
                             "works on float32, but \"" + boxes.name + "\" is " + text_of(boxes));
    }
    boxes.box_format = format_after(boxes.box_format);
  }

  BoxFormat format_after(BoxFormat before) const {
    if (offset_) return BoxFormat::kUnspecified;
    return is_normalized(before) ? BoxFormat::kCXCYWHNormalized : BoxFormat::kCXCYWH;
  }

  // DALI's rules: a box claims its best anchor, the last one among equals; every other anchor takes
  // its best box, the last one among equals, if their IoU is above `criteria`.
  std::vector<int64_t> matched(const std::vector<float>& corners) const {
    AnchorMatches matches(anchors_, criteria_);
    std::vector<std::pair<int32_t, int32_t>> forced;  // anchor and box
    for (size_t at = 0; at + 4 <= corners.size(); at += 4) {
      const float* const box = &corners[at];
      const bool finite = std::all_of(box, box + 4, [](float x) { return std::isfinite(x); });
      if (!finite || box[2] <= box[0] || box[3] <= box[1]) continue;  // not a valid box
      const auto row = static_cast<int32_t>(at / 4);
      forced.emplace_back(match_anchors(anchors_, box, row, matches), row);
    }
    for (const auto& [anchor, row] : forced) matches.row[static_cast<size_t>(anchor)] = row;
    return {matches.row.begin(), matches.row.begin() + static_cast<ptrdiff_t>(anchors_.size())};
  }

  void write(const std::vector<float>& corners, const std::vector<int64_t>& matches,
             FieldValue& boxes) const {
    Buffer made(matches.size() * sizeof(Quad));
    for (size_t i = 0; i < matches.size(); ++i) {
      const Quad anchor = {anchors_.left[i], anchors_.top[i], anchors_.right[i],
                           anchors_.bottom[i]};
      Quad box = anchor;
      if (matches[i] >= 0) std::copy_n(&corners[size_t(matches[i]) * 4], 4, box.begin());
      const Quad out = encoded(box, anchor, matches[i] >= 0);
      std::memcpy(made.data() + i * sizeof(Quad), out.data(), sizeof(Quad));
    }
    boxes.box_format = format_after(boxes.box_format);
    boxes.shares.clear();
    boxes.shape = {static_cast<int64_t>(matches.size()), 4};
    boxes.own(std::move(made));
  }

  static Quad center_of(const Quad& box) {
    return {0.5f * (box[0] + box[2]), 0.5f * (box[1] + box[3]), box[2] - box[0], box[3] - box[1]};
  }

  Quad encoded(const Quad& box, const Quad& anchor, bool matches) const {
    Quad out = center_of(box);
    if (!offset_) return out;
    if (!matches) return {};
    const Quad of = center_of(anchor);
    for (size_t i = 0; i < 2; ++i) {
      const float extent = out[i + 2] * scale_, whole = of[i + 2] * scale_;
      out[i] = ((out[i] * scale_ - of[i] * scale_) / whole - means_[i]) / stds_[i];
      const auto log = static_cast<float>(portable_log(static_cast<double>(extent / whole)));
      out[i + 2] = (log - means_[i + 2]) / stds_[i + 2];
    }
    return out;
  }

  AnchorColumns anchors_;
  const float criteria_;
  const bool offset_;
  const float scale_;
  Quad means_{}, stds_{};
};

const OpRecord kEncodeBoxes{
    .name = "EncodeBoxes",
    .doc =
        "Assigns a target box and label to each anchor of a single-shot detector (SSD's default "
        "boxes).\n\n"
        "Boxes, (rows, 4), float32, in pixels or normalized like the anchors, become (anchors, 4); "
        "the other fields of the row group get one row per anchor (labels become (anchors,)), so "
        "that batches are dense. Each box gets its best anchor; every other anchor takes its best "
        "box if their IoU is above criteria. The result has (center, width, height) of the "
        "assigned box, or of the anchor itself if none is assigned; with offset it has the offsets "
        "that a network should predict, 0 if none is assigned. Rows of unassigned anchors are 0 in "
        "the other fields, so class labels should begin at 1. A box without area gets no anchor.",
    .page = {.unseen = "its boxes are network targets: [detection](detection.md)"},
    .params = {{.name = "anchors",
                .type = ParamType::kFloats,
                .doc = "left, top, right, bottom of each anchor, in one flat list.",
                .required = true,
                .min_count = 4},
               {.name = "criteria",
                .type = ParamType::kFloat,
                .doc = "The IoU above which an anchor takes a box.",
                .fallback = 0.5,
                .minimum = 0,
                .maximum = 1},
               {.name = "offset",
                .type = ParamType::kBool,
                .doc =
                    "Whether to encode offsets: of the center, relative to the anchor's width and "
                    "height, and the logarithms of the size ratios.",
                .fallback = false},
               {.name = "scale",
                .type = ParamType::kFloat,
                .doc = "With offset: factor by which boxes and anchors are multiplied first.",
                .fallback = 1.0,
                .minimum = 1e-6,
                .maximum = 1e6},
               {.name = "means",
                .type = ParamType::kFloats,
                .doc = "With offset: values subtracted from the four offsets.",
                .fallback = std::vector<double>{0, 0, 0, 0},
                .min_count = 4,
                .max_count = 4},
               {.name = "stds",
                .type = ParamType::kFloats,
                .doc = "With offset: divisors of the four offsets.",
                .fallback = std::vector<double>{1, 1, 1, 1},
                .minimum = 1e-9,
                .min_count = 4,
                .max_count = 4}},
    .oracle =
        "DALI's box_encoder, by its rules in NumPy's float32: bit for bit, logarithms within 1 ulp",
    .example = {{"anchors", std::vector<double>{0, 0, 10, 10, 5, 5, 20, 20, 0, 0, 27, 23}},
                {"offset", true}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<EncodeBoxes>(arguments);
    }};
const Register<OpRecord> registered_encode_boxes(kEncodeBoxes);

}  // namespace
}  // namespace headrace
