// SPDX-License-Identifier: Apache-2.0
// Decoded frames of a video as pictures, for recipes: everything that applies to pictures applies
// to them.
#pragma once

#include "headrace/codecs/video/frame_codec.h"
#include "headrace/image/recipe.h"

namespace headrace {

// Borrows the frame; one that was kept may be moved. Conversion happens when the recipe is
// rendered.
inline EncodedPicture picture_of(const YuvFrame& frame) {
  return {.bytes = bytes_of(frame), .codec = &frame_codec(), .header = header_of(frame)};
}
inline EncodedPicture picture_of(const KeptFrame& frame) { return picture_of(frame.frame()); }

}  // namespace headrace
