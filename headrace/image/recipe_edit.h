// SPDX-License-Identifier: Apache-2.0
// A recipe for existing pixels, or the end of any recipe, as one pass of a batch kernel: crop with
// padding, horizontal flip, value mapping, an erased rectangle.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string_view>

#include "headrace/image/recipe.h"
#include "headrace/kernels/batch/picture_batch.h"

namespace headrace {

struct RecipeEdit {
  PictureEdit edit;               // its `tables` member is not set: `map` has the tables
  Size size;                      // of the result
  const PixelMap* map = nullptr;  // with uint8 input
  ChannelValues fill{};  // values before the map, for pixels of the result outside the picture
  bool is_filled = false;
  // A lookup table that is applied to bytes before the map; only set by take_end(). Shared with the
  // recipe.
  std::shared_ptr<const QuickTable> table = {};
};

// Empty if the recipe does more than that, or starts from pixels other than `source`.
std::optional<RecipeEdit> edit_of(const Recipe& recipe, const Picture& source);

// Removes from the end of the recipe what kernels can do to its pixels afterwards: the last flip, a
// lookup table for bytes, the map, an erased rectangle. The rest of the recipe renders to bytes. If
// the recipe does not end this way, returns an empty result and leaves it unchanged; `why_not` then
// says what it ends with.
std::optional<RecipeEdit> take_end(Recipe& recipe, std::string_view& why_not);

}  // namespace headrace
