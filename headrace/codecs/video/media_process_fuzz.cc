// SPDX-License-Identifier: Apache-2.0
// Any reply of the media process: an error, or a frame whose readable bytes are all within the
// shared memory.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "headrace/codecs/video/media_decoder.h"

using headrace::VideoTrack;
using headrace::YuvFrame;

namespace {

uint64_t sum_of(const YuvFrame& frame) {
  uint64_t sum = 0;
  for (int plane = 0; plane < frame.planes; ++plane) {
    const int shift_x = plane ? frame.chroma_x : 0, shift_y = plane ? frame.chroma_y : 0;
    const int columns = (frame.width + (1 << shift_x) - 1) >> shift_x;
    const int rows = (frame.height + (1 << shift_y) - 1) >> shift_y;
    const int bytes = columns * (frame.bits > 8 ? 2 : 1) + headrace::media::kReadPadding;
    for (int row = 0; row < rows; ++row) {
      const uint8_t* const begin = frame.plane[plane] + row * frame.stride[plane];
      for (int i = 0; i < bytes; ++i) sum += begin[i];
    }
  }
  return sum;
}

}  // namespace

// Input: a reply, the track's size (two bytes each), and the size of the memory (two bytes).
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  headrace::media::Reply reply;
  uint16_t sizes[3] = {64, 48, 8192};
  if (size < sizeof reply) return 0;
  std::memcpy(&reply, data, sizeof reply);
  if (size >= sizeof reply + sizeof sizes) {
    std::memcpy(sizes, data + sizeof reply, sizeof sizes);
  }
  VideoTrack track;
  track.width = sizes[0] % 512 + 1;
  track.height = sizes[1] % 512 + 1;
  const std::vector<uint8_t> memory(sizes[2], 1);
  const auto frame = headrace::yuv_frame_of(reply.frame, memory, track);
  if (frame) {
    if (frame->width != track.width || frame->height != track.height) std::abort();
    if (sum_of(*frame) == 0) std::abort();
  } else if (frame.error().message().empty()) {
    std::abort();
  }
  if (headrace::failure_of(reply, track).message().empty()) std::abort();
  return 0;
}
