// SPDX-License-Identifier: Apache-2.0
// A recipe over pixels that exist, or the end of any recipe, as the one pass that a batch kernel
// does: crop with padding, horizontal flip, map of values, a rectangle erased.
#pragma once

#include <array>
#include <optional>

#include "headrace/image/recipe.h"
#include "headrace/kernels/batch/picture_batch.h"

namespace headrace {

struct RecipeEdit {
  PictureEdit edit;               // its tables are those of `map`, whatever their number
  Size size;                      // of what comes out
  const PixelMap* map = nullptr;  // of bytes
  ChannelValues fill{};           // before the map, where `edit` reaches beyond the picture
  bool is_filled = false;
};

// Nothing where the recipe does more than that, or starts from other pixels than `source`.
std::optional<RecipeEdit> edit_of(const Recipe& recipe, const Picture& source);

// Takes off the recipe what a kernel can do to its pixels afterwards: the last flip, the map, a
// rectangle erased. What is left of it gives bytes. Nothing, and the recipe as it was, where it
// does not end so: its pixels are no bytes, several rectangles are erased, or one with noise.
std::optional<RecipeEdit> take_end(Recipe& recipe);

}  // namespace headrace
