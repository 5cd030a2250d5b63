// SPDX-License-Identifier: Apache-2.0
#include "headrace/fields/pictures.h"

#include <cstring>

#include "headrace/base/registry.h"
#include "headrace/fields/numbers.h"

namespace headrace {
namespace {

const ErrorCode kColourMask{
    "HR0121", ErrorKind::kData, "mask with several channels",
    "A mask is a picture of one channel whose values are labels: grey, or with a palette. This "
    "file "
    "has colours. Read it as an image field if the colours are meant, or convert it once."};

// EXIF 2.3, tag 274: how the stored picture must be turned to stand upright.
void stand_upright(Recipe& picture, int orientation) {
  if (orientation >= 5) picture.transpose();
  if (orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7) {
    picture.flip_horizontal();
  }
  if (orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8) {
    picture.flip_vertical();
  }
}

Result<void> begin_encoded(const Beginning& from, Recipe& recipe) {
  Result<EncodedPicture> opened = from.renderer.open(from.data.bytes, from.options.limits);
  if (!opened) return std::move(opened.error());
  opened->strict = from.options.strict;
  opened->repair = from.options.repair;
  opened->sixteen_bit = from.options.sixteen_bit;
  opened->row_index = from.data.row_index;
  opened->color = record_of(from.state.kind).color;
  if (channels_of(opened->color, opened->header) != from.state.shape[0]) {
    return Error{.code = &kColourMask,
                 .what = "\"" + from.state.name + "\" has " +
                         std::to_string(opened->header.channels) + " channels"};
  }
  recipe = Recipe(*opened);
  if (from.options.exif_orientation) stand_upright(recipe, opened->header.exif_orientation);
  return {};
}

// A warp that is none mixes no pixels, and is an edit like any other. A recipe that takes the first
// of these takes the second, so one that does not fit stays as it was.
bool turned(Recipe& picture, const Warp& warp) {
  const int turns = *warp.quarter_turns;
  if (turns % 2 && !picture.transpose()) return false;
  if ((turns == 2 || turns == 3) && !picture.flip_horizontal()) return false;
  return (turns != 1 && turns != 2) || picture.flip_vertical();
}

// The move on a recipe; false where it does not fit into it. REQUIRES: no warp but a turn.
bool edited(Recipe& picture, const Geometry::Move& move, std::optional<Filter> filter) {
  return std::visit(Cases{[&](const Geometry::Crop& crop) { return picture.crop(crop.window); },
                          [&](const Geometry::Resize& resize) {
                            return picture.resize(resize.to, filter.value_or(resize.filter));
                          },
                          [&](const Geometry::Pad& pad) {
                            std::array<double, 4> fill{};
                            for (size_t c = 0; c < fill.size(); ++c) {
                              if (pad.fill.size() == 1) fill[c] = pad.fill[0];
                              if (pad.fill.size() > 1 && c < pad.fill.size()) fill[c] = pad.fill[c];
                            }
                            const Borders& add = pad.borders;
                            return picture.pad(
                                add.left, add.top, add.right, add.bottom,
                                std::span(fill).first(static_cast<size_t>(picture.channels())));
                          },
                          [&](Geometry::FlipHorizontal) { return picture.flip_horizontal(); },
                          [&](Geometry::FlipVertical) { return picture.flip_vertical(); },
                          [&](Geometry::Transpose) { return picture.transpose(); },
                          [&](const Warp& warp) { return turned(picture, warp); }},
                    move);
}

// No recipe holds such borders. Only what a crop leaves of them is made.
Result<void> pad_with_itself(Renderer& renderer, const Geometry::Pad& pad,
                             const Geometry::Crop* crop, Recipe& picture) {
  const Borders& add = pad.borders;
  const Size size = picture.size();
  Window part{0, 0, size.width + add.left + add.right, size.height + add.top + add.bottom};
  if (crop) part = crop->window;
  part.x -= add.left;
  part.y -= add.top;
  if (Result<void> made = renderer.materialize(picture); !made) return made;
  const std::shared_ptr<const Picture> from = picture.pixels();
  const size_t after =
      size_t(part.height) * size_t(part.width) * size_t(from->channels) * size_of(from->dtype);
  if (Result<void> fits = renderer.check_growth(from->pixels.size(), after); !fits) return fits;
  picture = Recipe(padded_part(*picture.pixels(), pad.padding, part));
  return {};
}

const ErrorCode kTooMuchToWarp{
    "HR0126", ErrorKind::kResource, "warped picture exceeds the memory",
    "A warp that makes room for all of a turned picture makes long ones far larger, and this one "
    "would take more than memory_limit leaves for one record. Nothing was allocated. A Resize or a "
    "crop before it, no expand=True, or a higher memory_limit."};

// Room for an outcome that grows is not reserved, and may not take more than one record may have.
bool outgrows(const Warp& warp, const Picture& from, const Renderer& renderer) {
  const size_t before = size_t(from.height) * size_t(from.width);
  const size_t after = size_t(warp.to.height) * size_t(warp.to.width);
  return after > before && after * size_t(from.channels) > renderer.largest_value();
}

Result<void> warp_pixels(Renderer& renderer, const Warp& warp, bool is_mask, Recipe& picture) {
  if (Result<void> made = renderer.materialize(picture); !made) return made;
  if (outgrows(warp, *picture.pixels(), renderer)) {
    return Error{.code = &kTooMuchToWarp,
                 .what = "it would be " + std::to_string(warp.to.height) + " x " +
                         std::to_string(warp.to.width) + " (height x width)"};
  }
  picture = Recipe(std::make_shared<const WarpedPicture>(picture.pixels(), warp, is_mask));
  return {};
}

}  // namespace

bool take_picture(Field& field, FieldKind kind) {
  if (is_stored_bytes(field)) {
    field.encoded = true;
    field.shape = {-1, -1, -1};
  } else {
    const size_t rank = field.shape.size();
    if (is_string(field.kind) || field.dtype != DType::kUInt8 || (rank != 3 && rank != 2)) {
      return false;
    }
    if (rank == 2) field.shape.insert(field.shape.begin(), 1);
    if (field.shape[0] < 1 || field.shape[0] > 4) return false;
  }
  field.kind = kind;
  return true;
}

int channels_of(const KindRecord& kind) { return kind.color == ColorMode::kRGB ? 3 : 1; }

Result<void> begin_picture(const Beginning& from, FieldValue& value) {
  if (from.field.encoded) return begin_encoded(from, value.picture);
  const FieldData& data = from.data;
  const Shape& shape = data.shape.empty() ? from.state.shape : data.shape;
  if (!allows(from.state.shape, shape) || element_count(shape) == 0 ||
      data.bytes.size() != static_cast<size_t>(element_count(shape))) {
    return wrong_value(from.state, data);
  }
  value.picture = Recipe();  // lets go of the pixels, which are then free for this record
  std::shared_ptr<Picture>& memory = from.pixels;
  if (!memory || memory.use_count() > 1) memory = std::make_shared<Picture>();
  memory->channels = static_cast<int>(shape[0]);
  memory->height = static_cast<int>(shape[1]);
  memory->width = static_cast<int>(shape[2]);
  memory->pixels.resize(data.bytes.size());
  std::memcpy(memory->pixels.data(), data.bytes.data(), data.bytes.size());
  value.picture = Recipe(std::shared_ptr<const Picture>(memory));
  return {};
}

Result<void> follow_picture(const Following& way, FieldValue& value, std::optional<Filter> filter) {
  const std::span<const Geometry::Move> moves = way.geometry.moves();
  for (size_t i = 0; i < moves.size(); ++i) {
    const auto* const pad = std::get_if<Geometry::Pad>(&moves[i]);
    const Warp* const warp = std::get_if<Warp>(&moves[i]);
    Result<void> done;
    if (pad && pad->padding != Padding::kConstant) {
      const auto* const crop =
          i + 1 < moves.size() ? std::get_if<Geometry::Crop>(&moves[i + 1]) : nullptr;
      done = pad_with_itself(way.renderer, *pad, crop, value.picture);
      if (crop) ++i;
    } else if (warp && !warp->quarter_turns) {
      done = warp_pixels(way.renderer, *warp, filter.has_value(), value.picture);
    } else if (!edited(value.picture, moves[i], filter)) {
      // A resize keeps the border for itself, which would be many pixels.
      const bool resizes = std::holds_alternative<Geometry::Resize>(moves[i]);
      done = resizes ? way.renderer.materialize_shown(value.picture)
                     : way.renderer.materialize(value.picture);
      if (done && !edited(value.picture, moves[i], filter)) {
        done = way.renderer.materialize(value.picture);
        if (done) edited(value.picture, moves[i], filter);
      }
    }
    if (!done) return done;
  }
  return {};
}

}  // namespace headrace
