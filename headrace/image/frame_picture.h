// SPDX-License-Identifier: Apache-2.0
// Decoded video frames as pictures, so that all operations on pictures apply to them.
#pragma once

#include "headrace/codecs/video/frame_codec.h"
#include "headrace/image/recipe.h"

namespace headrace {

// Borrows the frame's planes. Colors are converted when the recipe is rendered.
inline EncodedPicture picture_of(const YuvFrame& frame) {
  return {.bytes = bytes_of(frame), .codec = &frame_codec(), .header = header_of(frame)};
}
inline EncodedPicture picture_of(const KeptFrame& frame) { return picture_of(frame.frame()); }

}  // namespace headrace
