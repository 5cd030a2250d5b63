// SPDX-License-Identifier: Apache-2.0
// Memory of frames that the engine reads without a copy: blocks of a file mapped by both processes.
// A block belongs to a decoder until the frame's last reference is dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

extern "C" {
#include <libavcodec/avcodec.h>
}

#include "headrace/codecs/media/media_protocol.h"

namespace headrace::media {

class FrameMemory {
 public:
  explicit FrameMemory(int file) : file_(file) {}
  FrameMemory(const FrameMemory&) = delete;
  FrameMemory& operator=(const FrameMemory&) = delete;

  // Maps at least the file's first `bytes`. REQUIRES: no block is in use.
  bool resize(size_t bytes);
  std::span<uint8_t> bytes() const { return {data_, bytes_}; }
  // A page-aligned block, or null if all are in use.
  AVBufferRef* allocate(size_t bytes);
  // The position of a frame's plane in the file; nothing if it is elsewhere.
  std::optional<uint64_t> offset(const uint8_t* plane) const;

  // Allocates a frame's planes as libavcodec requires.
  int give_planes(AVCodecContext* context, AVFrame* frame);

 private:
  struct Block {
    size_t offset, bytes;
    bool used;
  };
  static void drop(void* block, uint8_t*);

  int file_;
  uint8_t* data_ = nullptr;
  size_t bytes_ = 0, end_ = 0;                  // blocks are allocated from [0, end_)
  std::vector<std::unique_ptr<Block>> blocks_;  // addresses that buffers still reference
};

// For AVCodecContext::get_buffer2; its `opaque` is the memory.
int get_frame_buffer(AVCodecContext* context, AVFrame* frame, int flags);

}  // namespace headrace::media
