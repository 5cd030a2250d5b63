// SPDX-License-Identifier: Apache-2.0
// Turns frames of a video into images of a record. The frames are decoded together and kept in the
// decoder's format, and all operations on images apply to them.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/codecs/video/frame_codec.h"
#include "headrace/image/recipe.h"
#include "headrace/ops/op.h"

namespace headrace {

// Field pictures[i] becomes frame frames[i], upright. The same number may appear several times, in
// any order. HR0376 if a frame's size differs from the video's, HR0377 if it is high dynamic range
// and `hdr` is false.
Result<void> take_frames(const FieldValue& video, std::span<const uint32_t> frames, bool hdr,
                         std::span<const int> pictures, Record& record, Renderer& renderer);

// Borrows the frame's planes. Colors are converted when the recipe is rendered.
inline EncodedImage picture_of(const YuvFrame& frame) {
  return {.bytes = bytes_of(frame), .codec = &frame_codec(), .header = header_of(frame)};
}
inline EncodedImage picture_of(const KeptFrame& frame) { return picture_of(frame.frame()); }

}  // namespace headrace
