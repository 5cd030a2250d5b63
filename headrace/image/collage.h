// SPDX-License-Identifier: Apache-2.0
// Several pictures on one canvas, not yet decoded: a mosaic until a part of it is needed. Then only
// the visible parts are decoded, resized and put into place.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "headrace/image/recipe.h"
#include "headrace/image/warp_pass.h"

namespace headrace {

struct Collage {
  struct Tile {
    Recipe picture;    // of what shows, in 8 bits
    int x = 0, y = 0;  // of the canvas; all of the picture is inside
    Window window() const;
  };
  int channels = 0;
  Size size;
  ChannelValues fill{};     // where no tile is
  std::vector<Tile> tiles;  // of as many channels; none covers any of another
};

// Whether any part of the recipe can be put onto a canvas with this fill; else it is materialized
// before it becomes a tile.
bool can_be_tile(const Recipe& picture, const ChannelValues& fill);

// Size of all its pixels.
size_t canvas_bytes(const Collage& collage);

// The same as pixels, where all tiles have some; else nothing.
std::optional<std::vector<WarpPatch>> patches_of(const Collage& collage);

// The visible part of the tile's picture in a part of the canvas, with the part's border around it;
// nothing if it is not visible.
std::optional<Recipe> shown_in(const Collage& collage, const Collage::Tile& tile,
                               const Window& part);

}  // namespace headrace
