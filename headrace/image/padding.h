// SPDX-License-Identifier: Apache-2.0
// Borders made from the pixels of the picture, like numpy.pad: of any width, even larger than the
// picture.
#pragma once

#include <cstdint>
#include <memory>

#include "headrace/codecs/codec.h"
#include "headrace/image/picture.h"

namespace headrace {

enum class Padding : uint8_t {
  kConstant,   // a constant, stored in the recipe
  kEdge,       // repeats the edge pixel: aa|abc|cc
  kReflect,    // mirrors, without repeating the edge pixel: cb|abc|ba
  kSymmetric,  // mirrors, and repeats the edge pixel: ba|abc|cb
};

// Maps an index that may be outside [0, size) to the index of the element that appears there.
// REQUIRES: not kConstant, size > 0.
int padded_index(Padding padding, int64_t at, int size);

// A part of the padded picture. `window` is relative to the upper left corner of the unpadded
// picture.
std::shared_ptr<const Picture> padded_part(const Picture& picture, Padding padding,
                                           const Window& window);

}  // namespace headrace
