// SPDX-License-Identifier: Apache-2.0
// Borders made from the picture itself, as in numpy.pad: of any width, even larger than the
// picture.
#pragma once

#include <cstdint>
#include <memory>

#include "headrace/codecs/codec.h"
#include "headrace/image/picture.h"

namespace headrace {

enum class Padding : uint8_t {
  kConstant,   // a fill, which the recipe holds
  kEdge,       // the outermost pixel: aa|abc|cc
  kReflect,    // mirrored at it: cb|abc|ba
  kSymmetric,  // mirrored behind it: ba|abc|cb
};

// The index in `size` elements of `at`, which may be outside. REQUIRES: not kConstant, size > 0.
int padded_place(Padding padding, int64_t at, int size);

// A part of the padded picture: `window` counts from the picture's own corner.
std::shared_ptr<const Picture> padded_part(const Picture& picture, Padding padding,
                                           const Window& window);

}  // namespace headrace
