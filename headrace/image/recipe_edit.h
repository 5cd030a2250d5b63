// SPDX-License-Identifier: Apache-2.0
// A recipe over existing pixels, or the end of any recipe, as the single pass of a batch kernel:
// crop with padding, horizontal flip, value mapping, an erased rectangle.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string_view>

#include "headrace/image/recipe.h"
#include "headrace/kernels/batch/picture_batch.h"

namespace headrace {

struct RecipeEdit {
  PictureEdit edit;               // its tables are those of `map`, whatever their number
  Size size;                      // of what comes out
  const PixelMap* map = nullptr;  // of bytes
  ChannelValues fill{};           // before the map, where `edit` reaches beyond the picture
  bool is_filled = false;
  // shared: with the recipe. What becomes of bytes before the map; take_end() alone finds one.
  std::shared_ptr<const QuickTable> table = {};
};

// Nothing if the recipe does more than that, or starts from other pixels than `source`.
std::optional<RecipeEdit> edit_of(const Recipe& recipe, const Picture& source);

// Takes off the recipe what kernels can do to its pixels afterwards: the last flip, a table of
// bytes, the map, a rectangle erased. The rest of it gives bytes. Nothing, with the recipe
// unchanged, if it does not end this way; `why_not` then says what it ends with.
std::optional<RecipeEdit> take_end(Recipe& recipe, std::string_view& why_not);

}  // namespace headrace
