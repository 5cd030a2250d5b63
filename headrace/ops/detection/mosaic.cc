// SPDX-License-Identifier: Apache-2.0
// Mosaic: four records on one canvas (YOLOv4). Only the visible part of each picture is decoded.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "headrace/base/registry.h"
#include "headrace/image/collage.h"
#include "headrace/ops/detection/joined_rows.h"
#include "headrace/ops/row_op.h"

namespace headrace {
namespace {

constexpr int kTiles = 4;

// Position of a picture, and the part of it that is visible there.
struct Tile {
  Size to;           // size that the picture is resized to
  Window shown;      // of the resized picture
  int x = 0, y = 0;  // position on the canvas where `shown` begins
};

// One axis of a tile that ends (`before`) or begins at the center.
struct Span {
  int place, begin, extent;
};
Span span_of(bool before, int center, int length, int canvas) {
  if (!before) return {center, 0, std::min(length, canvas - center)};
  const int extent = std::min(length, center);
  return {center - extent, length - extent, extent};
}

struct Center {
  int x, y;
};

class Mosaic final : public PictureOp {
 public:
  Mosaic(Size size, std::array<double, 2> range, std::vector<double> fill, double mask_fill,
         Filter filter, int64_t within, double p)
      : size_(size),
        range_(range),
        fill_(std::move(fill)),
        mask_fill_{mask_fill},
        filter_(filter),
        within_(within),
        p_(p) {}
  int partners() const override { return kTiles - 1; }
  NearPartners near_partners() const override {
    return {within_, size_t(size_.height) * size_t(size_.width)};
  }
  bool changes_rows() const override { return true; }
  bool decides_by(FieldKind kind) const override { return kind == FieldKind::kBoxes; }

  Result<void> apply(OpContext& context) const override {
    std::optional<Center> center;
    if (p_ == 1 || context.draws.coin(p_)) {
      const int x = drawn_center(context.draws, size_.width);
      center = {x, drawn_center(context.draws, size_.height)};
    }
    std::array<Record*, kTiles> all = {&context.record};
    for (size_t i = 1; i < kTiles; ++i) all[i] = &context.partners[i - 1];
    std::array<Tile, kTiles> placed_tiles;
    const std::span<Record* const> records(all.data(), center ? kTiles : 1);
    const std::span<Tile> tiles(placed_tiles.data(), records.size());
    for (size_t i = 0; i < records.size(); ++i) {
      OpContext one{*records[i], context.fields, context.draws, context.renderer, {}, context.rows};
      Result<void> placed = place(one, static_cast<int>(i), center, tiles[i]);
      if (!placed) return placed;
    }
    for (const int field : context.fields) {
      if (!is_picture(context.record.fields[field].kind)) continue;
      Result<void> pasted = paste(context, field, records, tiles);
      if (!pasted) return pasted;
    }
    return join_records(records, context.rows, context.renderer);
  }

  // The whole picture, at its size on the canvas.
  Result<void> prepare(OpContext& context) const override {
    Result<Size> size = common_size(context);
    if (!size) return std::move(size.error());
    const Geometry resized = Geometry().resize(size_on_canvas(*size), filter_);
    for (const int field : context.fields) {
      if (Result<void> done = follow(context, field, *size, resized); !done) return done;
      FieldValue& value = context.record.fields[field];
      if (!is_picture(value.kind)) continue;
      if (Result<void> made = context.renderer.materialize(value.picture); !made) return made;
    }
    return {};
  }

 private:
  Size canvas() const { return {2 * size_.height, 2 * size_.width}; }

  int drawn_center(Draws& draws, int length) const {
    const double drawn = draws.uniform(range_[0], range_[1]) * length;
    return std::clamp(static_cast<int>(drawn), 1, 2 * length - 1);
  }

  void plan_picture(FieldState& picture) const override {
    check_filter("Mosaic", filter_, picture);
    check_border("Mosaic", fill_, mask_fill_, picture);
    if (picture.dtype != DType::kUInt8) {
      raise_invalid_argument("Mosaic",
                             "works on uint8, but \"" + picture.name + "\" is " + text_of(picture),
                             "put it before ToDtype");
    }
    constexpr int64_t kMaxBlended = 4;
    if (picture.shape[0] > kMaxBlended) {
      raise_invalid_argument("Mosaic", "works on up to 4 channels, but \"" + picture.name +
                                           "\" is " + text_of(picture));
    }
    picture.shape = {picture.shape[0], canvas().height, canvas().width};
  }

  // Moves everything of a record to its position; pictures are not extended to the canvas.
  Result<void> place(OpContext& one, int number, std::optional<Center> center, Tile& tile) const {
    if (Result<void> checked = check_row_counts(one.record, one.rows); !checked) return checked;
    Result<Size> size = common_size(one);
    if (!size) return std::move(size.error());
    tile = center ? tile_of(number, *center, *size) : middle_of(*size);
    Geometry seen = Geometry().resize(tile.to, filter_).crop(tile.shown);
    const Borders around{tile.x, tile.y, canvas().width - tile.x - tile.shown.width,
                         canvas().height - tile.y - tile.shown.height};
    const Geometry placed = Geometry(seen).pad(around, mask_fill_);
    for (const int field : one.fields) {
      const bool picture = is_picture(one.record.fields[field].kind);
      Result<void> done = follow(one, field, *size, picture ? seen : placed);
      if (!done) return done;
    }
    return {};
  }

  Size size_on_canvas(Size picture) const {
    const double scale = std::min(static_cast<double>(size_.height) / picture.height,
                                  static_cast<double>(size_.width) / picture.width);
    const auto scaled = [&](int edge, int most) {
      return std::clamp(static_cast<int>(edge * scale + 0.5), 1, most);
    };
    return {scaled(picture.height, size_.height), scaled(picture.width, size_.width)};
  }

  Tile tile_of(int number, Center center, Size picture) const {
    const Size to = size_on_canvas(picture);
    const Span across = span_of(number % 2 == 0, center.x, to.width, canvas().width);
    const Span down = span_of(number / 2 == 0, center.y, to.height, canvas().height);
    return {to, {across.begin, down.begin, across.extent, down.extent}, across.place, down.place};
  }

  // The only tile, in the middle of the canvas.
  Tile middle_of(Size picture) const {
    const Size to = size_on_canvas(picture);
    return {to,
            {0, 0, to.width, to.height},
            (canvas().width - to.width) / 2,
            (canvas().height - to.height) / 2};
  }

  // Pictures are decoded only once it is known which part is visible in the end.
  Result<void> paste(OpContext& context, int field, std::span<Record* const> records,
                     std::span<const Tile> tiles) const {
    Recipe& out = context.record.fields[field].picture;
    const std::span<const double> fill =
        border_of(context.record.fields[field].kind, fill_, mask_fill_);
    Collage collage{.channels = out.channels(), .size = canvas(), .fill = {}, .tiles = {}};
    for (size_t c = 0; c < size_t(collage.channels); ++c) {
      collage.fill[c] = static_cast<int>(fill.size() == 1 ? fill[0] : fill[c]);
    }
    for (size_t i = 0; i < tiles.size(); ++i) {
      Recipe& picture = records[i]->fields[field].picture;
      if (!can_be_tile(picture, collage.fill)) {
        if (Result<void> made = context.renderer.materialize(picture); !made) return made;
      }
      collage.tiles.push_back({std::exchange(picture, Recipe()), tiles[i].x, tiles[i].y});
    }
    out = Recipe(std::make_shared<const Collage>(std::move(collage)));
    return {};
  }

  const Size size_;
  const std::array<double, 2> range_;
  const std::vector<double> fill_, mask_fill_;
  const Filter filter_;
  const int64_t within_;
  const double p_;
};

std::unique_ptr<Op> make_mosaic(const Arguments& arguments) {
  const std::vector<double>& range = arguments.numbers("center_range");
  if (range[0] > range[1])
    raise_invalid_argument("Mosaic", "center_range must be (smallest, largest)");
  return std::make_unique<Mosaic>(
      size_from(arguments.integers("size")), std::array{range[0], range[1]},
      arguments.numbers("fill"), arguments.number("mask_fill"), filter_from("Mosaic", arguments),
      arguments.is_none("mix_within") ? 0 : arguments.integer("mix_within"), arguments.number("p"));
}

const OpRecord kMosaic{
    .name = "Mosaic",
    .doc =
        "Puts a record and three others of the epoch on one canvas around a random center (YOLO's "
        "mosaic).\n\n"
        "Images and masks, (C, H, W), uint8, become (C, 2 size[0], 2 size[1]): the record's own "
        "image at the top left of the center, the others at the top right, bottom left and bottom "
        "right, each resized to fit into size, touching the center and clipped at the canvas. "
        "Boxes, (rows, 4), follow their images, and the rows of all four, in all fields of the row "
        "group, are concatenated; other fields are the record's own. A RandomAffine or a crop "
        "after it restores the usual size; then only the visible part of each image is decoded.",
    .page = {.section = "Detection transforms", .step = "T.Mosaic((100, 130))"},
    .params =
        {{.name = "size",
          .type = ParamType::kInts,
          .doc = "Maximum size of one image in pixels: one number "
                 "for a square, or (height, width). The canvas is twice as high and wide.",
          .fallback = int64_t{640},
          .minimum = 1,
          .maximum = 1 << 13,
          .min_count = 1,
          .max_count = 2},
         {.name = "center_range",
          .type = ParamType::kFloats,
          .doc = "Position of the center, in multiples of size; 1 is the middle.",
          .fallback = std::vector<double>{0.5, 1.5},
          .minimum = 0,
          .maximum = 2,
          .min_count = 2,
          .max_count = 2},
         {.name = "fill",
          .type = ParamType::kFloats,
          .doc = "Fill value for the canvas: one number, or one per channel, 0 to 255.",
          .fallback = int64_t{114},
          .min_count = 1,
          .max_count = kMaxChannels},
         mask_fill_param(),
         interpolation_param(),
         antialias_param(),
         {.name = "mix_within",
          .type = ParamType::kInt,
          .doc =
              "Draw the other records from this many positions before the record's own, as other "
              "loaders draw from recently decoded images. Each image is then decoded once, whole, "
              "and kept for reuse. None: draw from the whole epoch.",
          .minimum = 1,
          .maximum = 1 << 20},
         {.name = "p",
          .type = ParamType::kFloat,
          .doc = "Probability of a mosaic. Otherwise the record's own image, resized to fit into "
                 "size, is alone in the middle of the canvas.",
          .fallback = 1.0,
          .minimum = 0,
          .maximum = 1}},
    .oracle =
        "Pillow's resize, crop and paste, bit for bit; positions as in mmdetection's and "
        "Ultralytics' Mosaic, in distribution",
    .example = {{"size", std::vector<int64_t>{24, 32}},
                {"mask_fill", 7.0},
                {"mix_within", int64_t{9}}},
    .scope = OpScope::kPartners,
    .random = true,
    .make = make_mosaic};
const Register<OpRecord> registered_mosaic(kMosaic);

}  // namespace
}  // namespace headrace
