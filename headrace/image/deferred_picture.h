// SPDX-License-Identifier: Apache-2.0
// A picture whose bytes were read and whose pixels nobody has made: what is to be done to it is
// noted, and done at once where it is used. Value type; copies share the bytes.
#pragma once

#include <memory>

#include "headrace/base/buffer.h"
#include "headrace/image/recipe.h"
#include "headrace/image/render.h"

namespace headrace {

struct DeferredPicture {
  // shared: with pictures that are made of this one. The recipe borrows them.
  std::shared_ptr<const Buffer> bytes;
  Recipe recipe;
};

// Reads the header. Errors are the picture's: Renderer::open().
inline Result<DeferredPicture> defer(Buffer bytes, ColorMode color, Renderer& renderer) {
  DeferredPicture out{.bytes = std::make_shared<const Buffer>(std::move(bytes)), .recipe = {}};
  Result<EncodedPicture> opened = renderer.open(out.bytes->bytes(), {});
  if (!opened) return std::move(opened.error());
  opened->color = color;
  out.recipe = Recipe(*opened);
  return out;
}

}  // namespace headrace
