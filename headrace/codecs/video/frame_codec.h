// SPDX-License-Identifier: Apache-2.0
// A decoded frame as a picture: its rows are converted to RGB when somebody wants them, of a window
// only, and go the way that every other picture's rows go (image/frame_picture.h).
//
// No bytes are recognized as a frame, and the codec is in no registry: what it is given is the
// description of a frame in this process's memory, never a file's bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "headrace/base/buffer.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/video/yuv_frame.h"

namespace headrace {

// Colours by kernels/video/yuv_rows.h, as the frame says them; what it does not say is BT.601 of
// limited range. Grey frames keep their bytes, and planes of red, green and blue are these.
// Transfer functions are not looked at: whoever wants bytes of PQ or HLG gets their code values.
const CodecRecord& frame_codec();

// What it decodes of a frame, and its header. The frame is borrowed. REQUIRES: 1 or 3 planes, 8 to
// 16 bits, chroma_x and chroma_y of 0 to 2.
std::span<const uint8_t> bytes_of(const YuvFrame& frame);
ImageHeader header_of(const YuvFrame& frame);

// A frame with planes of its own. Pictures of it may be used until it is changed or gone, wherever
// it was moved to meanwhile.
class KeptFrame {
 public:
  bool empty() const { return memory_.size() == 0; }
  // REQUIRES: not empty.
  const YuvFrame& frame() const;
  size_t held_bytes() const { return memory_.capacity(); }
  // Copies the frame, to where the last one was if that suffices.
  void keep(const YuvFrame& frame);

 private:
  Buffer memory_;  // a YuvFrame, and the planes that it points to
};
KeptFrame keep_frame(const YuvFrame& frame);

}  // namespace headrace
