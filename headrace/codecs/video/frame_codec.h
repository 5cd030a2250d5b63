// SPDX-License-Identifier: Apache-2.0
// A decoded frame as a picture: the rows of a window are converted to RGB on demand, and take the
// same path as every other picture's rows (image/frame_picture.h).
//
// No bytes are recognized as a frame, and the codec is in no registry: what it is given is the
// description of a frame in this process's memory, never a file's bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/video/yuv_frame.h"

namespace headrace {

// Colors by kernels/video/yuv_rows.h, as the frame says them; what it does not say is BT.601 of
// limited range. Gray frames keep their bytes, and planes of red, green and blue are these.
// Transfer functions are not looked at: whoever wants bytes of PQ or HLG gets their code values.
const CodecRecord& frame_codec();

// The bytes that it decodes of a frame, and its header. The frame is borrowed. REQUIRES: 1 or 3
// planes, 8 to 16 bits, chroma_x and chroma_y of 0 to 2.
std::span<const uint8_t> bytes_of(const YuvFrame& frame);
ImageHeader header_of(const YuvFrame& frame);

// A frame whose planes belong to a KeptFrames.
class KeptFrame {
 public:
  const YuvFrame& frame() const { return frame_; }

 private:
  friend class KeptFrames;
  YuvFrame frame_;
};

// Copies of a clip's frames. One memory for all of them, so that it is one that can be used again,
// or large enough for huge pages: pages that are touched for the first time would cost more than
// the copy. A frame's address stays what it is.
class KeptFrames {
 public:
  // shared: with whoever uses memory again that nobody has any more.
  using MemoryOf = std::function<std::shared_ptr<Buffer>(size_t bytes)>;
  explicit KeptFrames(size_t count, MemoryOf memory_of = fresh_memory);
  KeptFrames(const KeptFrames&) = delete;
  KeptFrames& operator=(const KeptFrames&) = delete;

  // Bytes of a frame here.
  static size_t bytes_for(const YuvFrame& frame);
  // Copies a frame; the first one makes room for all. REQUIRES: number < count, each once.
  void keep(size_t number, const YuvFrame& frame);
  // REQUIRES: it was kept.
  const KeptFrame& frame(size_t number) const { return frames_[number]; }
  size_t held_bytes() const { return held_bytes_; }

 private:
  static std::shared_ptr<Buffer> fresh_memory(size_t bytes) {
    return std::make_shared<Buffer>(bytes);
  }
  uint8_t* add_memory(size_t bytes);

  MemoryOf memory_of_;
  std::vector<KeptFrame> frames_;
  std::vector<std::shared_ptr<Buffer>> memory_;
  uint8_t* room_ = nullptr;  // for all frames
  size_t each_ = 0;          // bytes of it; frames that take more have memory apart
  size_t held_bytes_ = 0;
};

}  // namespace headrace
