// SPDX-License-Identifier: Apache-2.0
// Boxes: rows of numbers in the field's format, on the canvas of the record's pictures.
//
// They follow each move in their own dtype, and are clamped where torchvision v2 clamps them: after
// a crop, a pad and a warp, not after a flip or a resize. So a clipped box stays clipped, however
// the picture is rotated afterwards. Rows are never dropped: a box that has left the picture has no
// area, and is on its edge. (Row steps drop them: ops/row_op.h.) Rotated boxes have a separate
// mover.

#include "headrace/fields/boxes.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "headrace/base/registry.h"
#include "headrace/fields/numbers.h"
#include "headrace/fields/rotated_mover.h"

namespace headrace {
namespace {

template <class Number>
class BoxMover {
 public:
  // Multiplies `shares`, if given, by the fraction of each box that remains after clamping.
  BoxMover(std::span<Number> boxes, BoxFormat format, bool clamps, std::span<float> shares)
      : boxes_(boxes), format_(format), clamps_(clamps), shares_(shares) {}

  void move(const Geometry::Move& by, Size canvas) {
    std::visit(Cases{[&](const Geometry::Crop& crop) {
                       shift(minus(Number{0}, Number(crop.window.x)),
                             minus(Number{0}, Number(crop.window.y)));
                       clamp({crop.window.height, crop.window.width});
                     },
                     [&](const Geometry::Pad& pad) {
                       shift(Number(pad.borders.left), Number(pad.borders.top));
                       clamp(canvas_after(pad, canvas));
                     },
                     [&](const Geometry::Resize& resize) { resize_to(resize.to, canvas); },
                     [&](Geometry::FlipHorizontal) { flip(0, Number(canvas.width)); },
                     [&](Geometry::FlipVertical) { flip(1, Number(canvas.height)); },
                     [&](Geometry::Transpose) {
                       each([](Number* box) {
                         std::swap(box[0], box[1]);
                         std::swap(box[2], box[3]);
                       });
                     },
                     [&](const Warp& warp) { warp_to(warp, canvas); }},
               by);
  }

  void clamp(Size canvas) {
    if (!clamps_) return;
    each_as_corners([&](Real* at, size_t row) { clamp_corners(at, row, canvas); });
  }

 private:
  using Real = RealOf<Number>;

  template <class Change>
  void each(const Change& change) {
    for (size_t at = 0; at + 4 <= boxes_.size(); at += 4) change(boxes_.data() + at);
  }

  void shift(Number x, Number y) {
    const bool corners = format_ == BoxFormat::kXYXY;
    each([&](Number* box) {
      box[0] = plus(box[0], x);
      box[1] = plus(box[1], y);
      if (!corners) return;
      box[2] = plus(box[2], x);
      box[3] = plus(box[3], y);
    });
  }

  void resize_to(Size to, Size canvas) {
    if (to == canvas) return;
    const float x = scale_of(to.width, canvas.width), y = scale_of(to.height, canvas.height);
    each([&](Number* box) {
      box[0] = scaled(box[0], x);
      box[1] = scaled(box[1], y);
      box[2] = scaled(box[2], x);
      box[3] = scaled(box[3], y);
    });
  }

  // Mirrors along one axis.
  void flip(int axis, Number extent) {
    each([&](Number* box) {
      Number &low = box[axis], &other = box[axis + 2];
      switch (format_) {
        case BoxFormat::kXYXY:
          low = minus(extent, std::exchange(other, minus(extent, low)));
          break;
        case BoxFormat::kXYWH:
          low = minus(extent, plus(low, other));
          break;
        default:
          low = minus(extent, low);
      }
    });
  }

  // The bounding box of its mapped corners.
  void warp_to(const Warp& warp, Size canvas) {
    const PointMap<Real> map(warp, canvas);
    each_as_corners([&](Real* at, size_t row) {
      // torchvision computes corners of integer boxes as integers in perspective, as floats in
      // affine.
      const bool in_integers = warp.bends() || warp.map == Warp::Map::kPerspective;
      if (std::is_integral_v<Number> && in_integers) {
        for (int i = 0; i < 4; ++i) at[i] = std::trunc(at[i]);
      } else if (warp.bends()) {
        for (int i = 0; i < 4; ++i) at[i] = std::ceil(at[i]);
      }
      constexpr Real kEnd = std::numeric_limits<Real>::infinity();
      Real range[4] = {kEnd, kEnd, -kEnd, -kEnd};
      for (int corner = 0; corner < 4; ++corner) {
        const auto to = map(at[corner % 2 * 2], at[corner / 2 * 2 + 1]);
        for (size_t i = 0; i < 2; ++i) {  // NaN stays
          if (range[i] == range[i] && !(to[i] >= range[i])) range[i] = to[i];
          if (range[i + 2] == range[i + 2] && !(to[i] <= range[i + 2])) range[i + 2] = to[i];
        }
      }
      std::copy_n(range, 4, at);
      if (std::is_integral_v<Number> && warp.bends()) {
        for (int i = 0; i < 4; ++i) at[i] = std::trunc(at[i]);
      }
      if (clamps_) clamp_corners(at, row, warp.to);
    });
  }

  // Integers are transformed as floats, then truncated.
  template <class Change>
  void each_as_corners(const Change& change) {
    size_t row = 0;
    each([&](Number* box) {
      Real at[4];
      for (int i = 0; i < 4; ++i) at[i] = static_cast<Real>(box[i]);
      convert_box(at, format_, BoxFormat::kXYXY);
      change(at, row++);
      convert_box(at, BoxFormat::kXYXY, format_);
      for (int i = 0; i < 4; ++i) box[i] = number_from<Number>(at[i]);
    });
  }

  void clamp_corners(Real* at, size_t row, Size canvas) {
    const Real whole = area(at);
    for (int i = 0; i < 4; ++i) {
      const Real most = static_cast<Real>(i % 2 == 0 ? canvas.width : canvas.height);
      at[i] = at[i] < 0 ? 0 : at[i] > most ? most : at[i];  // NaN stays
    }
    if (row < shares_.size() && whole > 0) {
      shares_[row] = static_cast<float>(shares_[row] * (area(at) / whole));
    }
  }

  static Real area(const Real* corners) {
    return std::max(Real{0}, corners[2] - corners[0]) * std::max(Real{0}, corners[3] - corners[1]);
  }

  const std::span<Number> boxes_;
  const BoxFormat format_;
  const bool clamps_;
  const std::span<float> shares_;
};

Result<void> begin_boxes(const BeginContext& from, FieldValue& value) {
  Result<void> begun = begin_numbers(from, value);
  value.box_format = from.state.box_format;
  value.clamping = from.state.clamping;
  const auto rows = value.shape.size() > 1 ? static_cast<size_t>(value.shape[0]) : 0;
  value.shares.assign(begun && from.state.keeps_shares ? rows : 0, 1.0f);
  return begun;
}

std::string boxes_want(const FieldState& field) {
  const BoxFormat format = field.box_format;
  const int numbers = numbers_of(format);
  if (field.shape.empty() || field.shape.back() != numbers) {
    return is_rotated(format)
               ? "only boxes with " + std::to_string(numbers) + " numbers each can follow it"
               : "only boxes with four numbers each can follow it";
  }
  if (is_rotated(format) && field.dtype != DType::kFloat32 && field.dtype != DType::kFloat64) {
    return "only float32 or float64 rotated boxes can follow it";
  }
  if (!is_movable(field.dtype)) return "only float32, float64, int32 or int64 boxes can follow it";
  if (is_normalized(format)) {
    return "only boxes in pixels can follow it: put ConvertBoundingBoxFormat(\"" +
           std::string(name_of(of_pixels(format))) + "\") before it";
  }
  if (format != BoxFormat::kUnspecified) return {};
  return "only boxes with a declared format can follow it: open the source with kinds={\"" +
         field.name + "\": \"boxes:xyxy\"}, or xywh, cxcywh";
}

// Calls `use` with the function that moves and clamps the boxes.
template <class Use>
void with_mover(FieldValue& value, Clamping clamping, const Use& use) {
  change_coordinates(value, [&]<class Number>(std::span<Number> boxes) {
    if constexpr (std::is_floating_point_v<Number>) {
      if (is_rotated(value.box_format)) {
        return use(RotatedMover<Number>(boxes, value.box_format, clamping));
      }
    }
    use(BoxMover(boxes, value.box_format, clamping != Clamping::kNone, value.shares));
  });
}

Result<void> boxes_follow(const FollowContext& way, FieldValue& value) {
  with_mover(value, value.clamping, [&](auto mover) {
    Size canvas = way.canvas;
    for (const Geometry::Move& move : way.geometry.moves()) {
      mover.move(move, canvas);
      canvas = canvas_after(move, canvas);
    }
  });
  return {};
}

const KindRecord kBoxes{
    .name = "boxes",
    .doc =
        "Rows of four numbers, or of five or eight for rotated boxes; or one coordinate of each "
        "box. If their format is known (xyxy, xywh, cxcywh, xywhr, cxcywhr or xyxyxyxy, in pixels) "
        "they follow the record's images.",
    .kind = FieldKind::kBoxes,
    .spatial = true,
    .take = [](Field& field) { return take_numbers(field, FieldKind::kBoxes); },
    .begin = begin_boxes,
    .follow = boxes_follow,
    .wants = boxes_want};
const Register<KindRecord> registered_boxes(kBoxes);

}  // namespace

void clamp_boxes(FieldValue& value, Size canvas, Clamping clamping) {
  with_mover(value, clamping, [&](auto mover) { mover.clamp(canvas); });
}

}  // namespace headrace
