// SPDX-License-Identifier: Apache-2.0
// Several pictures, not decoded yet, on one canvas, such as a mosaic. When a part of the canvas is
// needed, only the visible parts of the pictures are decoded, resized and copied to their
// positions.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "headrace/image/recipe.h"
#include "headrace/image/warp_pass.h"

namespace headrace {

struct Collage {
  struct Tile {
    Recipe picture;    // of the visible pixels, 8 bits per sample
    int x = 0, y = 0;  // position on the canvas, which contains the whole picture
    Window window() const;
  };
  int channels = 0;
  Size size;
  ChannelValues fill{};     // color where there is no tile
  std::vector<Tile> tiles;  // with equal numbers of channels; they do not overlap
};

// Whether any part of the recipe can be rendered on a canvas with this fill. If not, the recipe
// must be materialized before it becomes a tile.
bool can_be_tile(const Recipe& picture, const ChannelValues& fill);

// Size of all pixels of the canvas.
size_t canvas_bytes(const Collage& collage);

// The tiles as pixels, if all of them start from pixels; otherwise empty.
std::optional<std::vector<WarpPatch>> patches_of(const Collage& collage);

// The tile's picture within a part of the canvas, padded to the size of that part; empty if it is
// not visible there.
std::optional<Recipe> shown_in(const Collage& collage, const Collage::Tile& tile,
                               const Window& part);

}  // namespace headrace
