// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/collage.h"

#include <cassert>
#include <span>

namespace headrace {
namespace {

std::span<const double> fill_of(const ChannelValues& fill, const Recipe& picture) {
  return std::span(fill).first(static_cast<size_t>(picture.channels()));
}

}  // namespace

Window Collage::Tile::window() const {
  const Size size = picture.size();
  return {x, y, size.width, size.height};
}

bool can_be_tile(const Recipe& picture, const ChannelValues& fill) {
  Recipe trial = picture;
  return trial.crop({0, 0, 1, 1}) && trial.pad(1, 1, 1, 1, fill_of(fill, trial)) &&
         Recipe(picture).pad(1, 1, 1, 1, fill_of(fill, picture));
}

std::optional<Recipe> shown_in(const Collage& collage, const Collage::Tile& tile,
                               const Window& part) {
  const Window whole = tile.window();
  const Window both = common(whole, part);
  if (both.empty()) return {};
  const Window place = seen_from(part.x, part.y, both);
  Recipe shown = tile.picture;
  [[maybe_unused]] const bool held =
      shown.crop(seen_from(whole.x, whole.y, both)) &&
      shown.pad(place.x, place.y, part.width - place.x - place.width,
                part.height - place.y - place.height, fill_of(collage.fill, shown));
  assert(held);  // see can_be_tile
  return shown;
}

std::optional<std::vector<WarpPatch>> patches_of(const Collage& collage) {
  std::vector<WarpPatch> out;
  for (const Collage::Tile& tile : collage.tiles) {
    const Recipe::View view = tile.picture.view();
    if (!view.picture) return {};
    out.push_back({view.picture, view.window, tile.x, tile.y});
  }
  return out;
}

size_t canvas_bytes(const Collage& collage) {
  return size_t(collage.size.height) * size_t(collage.size.width) * size_t(collage.channels);
}

Size source_size(const WarpedPicture& picture) {
  if (picture.collage) return picture.collage->size;
  return {picture.from->height, picture.from->width};
}

DType dtype_of(const WarpedPicture& picture) {
  return picture.collage ? DType::kUInt8 : picture.from->dtype;
}

int source_channels(const WarpedPicture& picture) {
  return picture.collage ? picture.collage->channels : picture.from->channels;
}

}  // namespace headrace
