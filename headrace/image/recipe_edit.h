// SPDX-License-Identifier: Apache-2.0
// A recipe over pixels that exist, as the one pass that a batch kernel does: crop with padding,
// horizontal flip, map of values, a rectangle erased.
#pragma once

#include <array>
#include <optional>

#include "headrace/image/recipe.h"
#include "headrace/kernels/batch/picture_batch.h"

namespace headrace {

struct RecipeEdit {
  PictureEdit edit;
  Size size;                      // of what comes out
  const PixelMap* map = nullptr;  // of bytes
  ChannelValues fill{};           // before the map, where `edit` reaches beyond the picture
  bool is_filled = false;
  std::optional<ChannelValues> erased;  // after the map: what `edit` cuts
};

// Nothing where the recipe does more than that, or starts from other pixels than `source`.
std::optional<RecipeEdit> edit_of(const Recipe& recipe, const Picture& source);

}  // namespace headrace
