// SPDX-License-Identifier: Apache-2.0
// CopyPaste: instances of another record pasted onto this one, by their masks (Ghiasi et al. 2021).
#include <algorithm>
#include <cstring>
#include <optional>

#include "headrace/base/registry.h"
#include "headrace/fields/boxes.h"
#include "headrace/fields/rows.h"
#include "headrace/ops/detection/joined_rows.h"
#include "headrace/ops/row_op.h"

namespace headrace {
namespace {

const ErrorCode kMasksElsewhere{
    "HR0517", ErrorKind::kData, "masks do not match their image",
    "CopyPaste cuts out instances by their masks, (rows, H, W), but these masks differ from the "
    "record's image in height or width. The files were mixed up, or the masks were made for a "
    "different size."};

constexpr int kBlend = 2;  // pixels around a pasted instance that are blended in with it

// Where something is pasted: one byte per pixel, and the smallest window that contains all of it.
struct Pasted {
  Size size;
  std::vector<uint8_t> at;
  Window window{0, 0, 0, 0};
};

// The part of an instance that remains after pasting.
struct Left {
  int64_t before = 0, after = 0;
  int x = 0, y = 0, right = 0, bottom = 0;
};

size_t plane_of(Size size) { return size_t(size.height) * size_t(size.width); }

// Dilates one line: each value becomes the maximum of those up to kBlend away.
void spread(const std::vector<uint8_t>& in, size_t lines, size_t length, size_t step, size_t next,
            std::vector<uint8_t>& out) {
  for (size_t line = 0; line < lines; ++line) {
    for (size_t i = 0; i < length; ++i) {
      if (!in[line * next + i * step]) continue;
      const size_t end = std::min(length, i + kBlend + 1);
      for (size_t j = i < kBlend ? 0 : i - kBlend; j < end; ++j) out[line * next + j * step] = 1;
    }
  }
}

void widen(Pasted& pasted) {
  const auto width = size_t(pasted.size.width), height = size_t(pasted.size.height);
  std::vector<uint8_t> across(pasted.at.size()), all(pasted.at.size());
  spread(pasted.at, height, width, 1, width, across);
  spread(across, width, height, width, 1, all);
  pasted.at = std::move(all);
}

void find_window(Pasted& pasted) {
  int left = pasted.size.width, top = pasted.size.height, right = 0, bottom = 0;
  for (int y = 0; y < pasted.size.height; ++y) {
    const uint8_t* const row = &pasted.at[size_t(y) * size_t(pasted.size.width)];
    const uint8_t* const end = row + pasted.size.width;
    const uint8_t* const first = std::find(row, end, 1);
    if (first == end) continue;
    left = std::min(left, static_cast<int>(first - row));
    right = std::max(
        right,
        static_cast<int>(
            std::find(std::make_reverse_iterator(end), std::make_reverse_iterator(row), 1).base() -
            row));
    top = std::min(top, y);
    bottom = y + 1;
  }
  if (bottom > 0) pasted.window = {left, top, right - left, bottom - top};
}

// Removes the pasted area from an instance's mask.
Left cut_out(const Pasted& pasted, uint8_t* mask) {
  Left left{.x = pasted.size.width, .y = pasted.size.height};
  for (int y = 0; y < pasted.size.height; ++y) {
    for (int x = 0; x < pasted.size.width; ++x) {
      const size_t at = size_t(y) * size_t(pasted.size.width) + size_t(x);
      if (!mask[at]) continue;
      ++left.before;
      if (pasted.at[at]) {
        mask[at] = 0;
        continue;
      }
      ++left.after;
      left.x = std::min(left.x, x);
      left.right = std::max(left.right, x + 1);
      left.y = std::min(left.y, y);
      left.bottom = y + 1;
    }
  }
  return left;
}

class CopyPaste final : public PictureOp {
 public:
  CopyPaste(double p, bool blends, double min_visibility, Filter filter)
      : p_(p), blends_(blends), min_visibility_(min_visibility), filter_(filter) {}
  int partners() const override { return 1; }
  bool changes_rows() const override { return true; }
  bool decides_by(FieldKind kind) const override { return kind == FieldKind::kMasks; }
  std::string cannot_move(const FieldState& follower) const override {
    if (follower.kind == FieldKind::kMasks &&
        (follower.shape.size() != 3 || size_of(follower.dtype) != 1)) {
      return "CopyPaste reads masks of instances, (rows, H, W), uint8 or bool";
    }
    if (follower.kind == FieldKind::kBoxes && follower.shape.size() != 2) {
      return "CopyPaste computes boxes (rows, 4) from masks";
    }
    return why_not_rotated("CopyPaste", follower);
  }

  Result<void> apply(OpContext& context) const override {
    if (!deciding_rows(context, FieldKind::kMasks)) {  // no rows when called by Plan::passes
      return edit_all(context, [](Recipe& recipe) { return recipe.pixels() != nullptr; });
    }
    Record& partner = context.partners[0];
    OpContext other{partner, context.fields, context.draws, context.renderer, {}, context.rows};
    for (const OpContext* one : {&std::as_const(context), &std::as_const(other)}) {
      if (Result<void> checked = check(*one); !checked) return checked;
    }
    Result<Size> size = common_size(context);
    if (!size) return std::move(size.error());
    if (!context.draws.coin(p_)) return {};
    other.draws = context.draws;
    Result<Pasted> pasted = choose(other, *size);
    if (!pasted) return std::move(pasted.error());
    if (pasted->window.width == 0) return {};
    if (blends_) widen(*pasted);
    find_window(*pasted);
    for (const int field : context.fields) {
      if (!is_picture(context.record.fields[field].kind)) continue;
      Result<void> done = paste(context.renderer, *pasted, partner.fields[field].picture,
                                context.record.fields[field].picture);
      if (!done) return done;
    }
    hide(context, *pasted);
    const std::array<Record*, 2> both = {&context.record, &partner};
    return join_records(both, context.rows, context.renderer);
  }

 private:
  void plan_picture(FieldState& picture) const override {
    if (picture.dtype == DType::kUInt8) return;
    raise_invalid_argument("CopyPaste",
                           "works on uint8, but \"" + picture.name + "\" is " + text_of(picture),
                           "put it before ToDtype");
  }

  static Result<void> check(const OpContext& one) {
    if (Result<void> counts = check_row_counts(one.record, one.rows); !counts) return counts;
    Result<Size> size = common_size(one);
    if (!size) return std::move(size.error());
    const Shape& masks = deciding_rows(one, FieldKind::kMasks)->shape;
    if (masks[1] == size->height && masks[2] == size->width) return {};
    return Error{.code = &kMasksElsewhere,
                 .what = "masks of " + text_of(Size{int(masks[1]), int(masks[2])}) +
                         " on an image of " + text_of(*size)};
  }

  // Like the reference: draws as many times as there are instances, and takes each drawn one once;
  // all of `size` if every one was drawn.
  Result<Pasted> choose(OpContext& other, Size size) const {
    FieldValue& masks = *deciding_rows(other, FieldKind::kMasks);
    const int64_t count = row_count(masks);
    Pasted pasted{.size = size, .at = std::vector<uint8_t>(plane_of(size))};
    std::vector<bool> chosen(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i)
      chosen[static_cast<size_t>(other.draws.below(count))] = true;
    if (count == 0) return pasted;
    keep_rows(other, chosen);
    Result<Size> its = common_size(other);
    if (!its) return std::move(its.error());
    if (*its != size) {
      Result<void> done = follow(other, Geometry().resize(size, filter_));
      if (!done) return std::move(done.error());
    }
    std::vector<bool> shows;
    const size_t plane = plane_of(size);
    for (int64_t row = 0; row < row_count(masks); ++row) {
      const uint8_t* const mask = masks.bytes.data() + size_t(row) * plane;
      bool any = false;
      for (size_t i = 0; i < plane; ++i) {
        if (mask[i]) pasted.at[i] = 1, any = true;
      }
      shows.push_back(any);
    }
    keep_rows(other, shows);
    find_window(pasted);
    return pasted;
  }

  // Only the visible part of the other picture is decoded.
  static Result<void> paste(Renderer& renderer, const Pasted& pasted, Recipe& from, Recipe& onto) {
    const Window& part = pasted.window;
    Result<void> cropped = edit(from, renderer, [&](Recipe& recipe) { return recipe.crop(part); });
    if (!cropped) return cropped;
    if (Result<void> made = renderer.materialize(from); !made) return made;
    if (Result<void> made = renderer.materialize(onto); !made) return made;
    const std::shared_ptr<const Picture> source = from.pixels(), under = onto.pixels();
    auto joined =
        std::make_shared<Picture>(under->channels, under->height, under->width, DType::kUInt8);
    std::memcpy(joined->pixels.data(), under->pixels.data(), under->pixels.size());
    for (int c = 0; c < joined->channels; ++c) {
      for (int y = 0; y < part.height; ++y) {
        const size_t at = size_t(part.y + y) * size_t(joined->width) + size_t(part.x);
        const uint8_t* const take = &pasted.at[at];
        const uint8_t* const in = source->plane(c) + size_t(y) * size_t(part.width);
        uint8_t* const to = joined->plane(c) + at;
        for (int x = 0; x < part.width; ++x) to[x] = take[x] ? in[x] : to[x];
      }
    }
    from = Recipe();
    onto = Recipe(std::shared_ptr<const Picture>(std::move(joined)));
    return {};
  }

  // Instances under what is pasted lose the covered part, in masks and boxes; instances with too
  // little left are dropped.
  void hide(OpContext& context, const Pasted& pasted) const {
    FieldValue& masks = *deciding_rows(context, FieldKind::kMasks);
    Buffer made(masks.bytes.size());
    if (!masks.bytes.empty()) std::memcpy(made.data(), masks.bytes.data(), masks.bytes.size());
    std::vector<Left> left;
    std::vector<bool> kept;
    for (int64_t row = 0; row < row_count(masks); ++row) {
      const Left& its =
          left.emplace_back(cut_out(pasted, made.data() + size_t(row) * plane_of(pasted.size)));
      kept.push_back(its.after > 0 && static_cast<double>(its.after) >=
                                          min_visibility_ * static_cast<double>(its.before));
    }
    masks.own(std::move(made));
    for (const int field : context.rows) {
      FieldValue& boxes = context.record.fields[field];
      if (boxes.kind == FieldKind::kBoxes) bound(left, boxes);
    }
    keep_rows(context, kept);
  }

  static void bound(const std::vector<Left>& left, FieldValue& boxes) {
    change_coordinates(boxes, [&]<class Number>(std::span<Number> numbers) {
      for (size_t row = 0; row < left.size(); ++row) {
        const Left& its = left[row];
        if (its.after == its.before || its.after == 0) continue;
        Number* const box = &numbers[row * 4];
        const int corners[] = {its.x, its.y, its.right, its.bottom};
        for (size_t i = 0; i < 4; ++i) box[i] = static_cast<Number>(corners[i]);
        convert_box(box, BoxFormat::kXYXY, boxes.box_format);
        if (!boxes.shares.empty()) {
          boxes.shares[row] *= static_cast<float>(its.after) / static_cast<float>(its.before);
        }
      }
    });
  }

  const double p_;
  const bool blends_;
  const double min_visibility_;
  const Filter filter_;
};

const OpRecord kCopyPaste{
    .name = "CopyPaste",
    .doc =
        "Pastes instances from another record of the epoch onto this one, using their masks "
        "(simple copy-paste).\n\n"
        "Images and masks, (C, H, W), uint8, of the same size, with instance masks, (rows, H, W), "
        "uint8 or bool, 0 outside the instance; sizes are unchanged. The other record is resized "
        "to this one's size. Of its n instances, n are drawn with replacement, and each distinct "
        "one is pasted once. Hidden pixels are removed from the record's own masks, and boxes, "
        "(rows, 4), shrink to what remains visible. Rows of both records, in all fields of the row "
        "group, are concatenated: first the record's own that are still visible, then the pasted "
        "ones.",
    .page = {.unseen = "it needs instance masks: [detection](detection.md)"},
    .params =
        {{.name = "p",
          .type = ParamType::kFloat,
          .doc = "Probability of pasting onto a record.",
          .fallback = 1.0,
          .minimum = 0,
          .maximum = 1},
         {.name = "blending",
          .type = ParamType::kBool,
          .doc = "Whether a border of two pixels around each instance is pasted with it, as "
                 "torchvision's blur of the mask does.",
          .fallback = true},
         {.name = "min_visibility",
          .type = ParamType::kFloat,
          .doc = "Minimum visible fraction of an instance's mask; instances below it are dropped. "
                 "Completely hidden instances are always dropped.",
          .fallback = 0.0,
          .minimum = 0,
          .maximum = 1},
         interpolation_param(),
         antialias_param()},
    .oracle =
        "torchvision's SimpleCopyPaste (references/detection), computed in NumPy, bit for bit; "
        "recomputed boxes end after their last pixel, and the resize is Pillow's",
    .example = {{"min_visibility", 0.1}},
    .scope = OpScope::kPartners,
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<CopyPaste>(arguments.number("p"), arguments.flag("blending"),
                                         arguments.number("min_visibility"),
                                         filter_from("CopyPaste", arguments));
    }};
const Register<OpRecord> registered_copy_paste(kCopyPaste);

}  // namespace
}  // namespace headrace
