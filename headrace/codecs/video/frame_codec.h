// SPDX-License-Identifier: Apache-2.0
// A decoded frame as a picture: the rows of a window are converted to RGB on demand, and take the
// same path as every other picture's rows (ops/video/clip_frames.h).
//
// The codec is not registered, so no file is recognized as a frame: its input is a description of a
// frame in this process's memory, never a file's bytes.
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

// Converts colors with kernels/video/yuv_rows.h, as the frame specifies; the default is BT.601 in
// limited range. Gray frames and planes of red, green and blue are copied. Transfer functions are
// ignored: PQ or HLG as bytes gives their code values.
const CodecRecord& frame_codec();

// The input bytes of this codec for a frame, and the header. Both borrow the frame. REQUIRES: 1 or
// 3 planes, 8 to 16 bits, chroma_x and chroma_y of 0 to 2.
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

// Copies of a clip's frames, in one block of memory, which can be reused, or is large enough for
// huge pages: touching fresh pages would cost more than the copy. A frame's address does not
// change.
class KeptFrames {
 public:
  // Shared with a pool that reuses the memory after its last user.
  using MemoryOf = std::function<std::shared_ptr<Buffer>(size_t bytes)>;
  explicit KeptFrames(size_t count, MemoryOf memory_of = fresh_memory);
  KeptFrames(const KeptFrames&) = delete;
  KeptFrames& operator=(const KeptFrames&) = delete;

  // Bytes per frame that a copy needs.
  static size_t bytes_for(const YuvFrame& frame);
  // Copies a frame; the first one allocates memory for all. REQUIRES: number < count, each once.
  void keep(size_t number, const YuvFrame& frame);
  // REQUIRES: the frame was added.
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
  uint8_t* room_ = nullptr;  // memory of all frames
  size_t each_ = 0;          // bytes per frame; larger frames get separate memory
  size_t held_bytes_ = 0;
};

}  // namespace headrace
