// SPDX-License-Identifier: Apache-2.0
// Any bytes as an index, with the correct hash added.
#include "headrace/codecs/video/video_index.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <vector>

#include "headrace/base/byte_stream.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  constexpr uint64_t kFileBytes = 1 << 20;
  ByteWriter index;
  index.bytes(std::span(data, size));
  index.number(uint64_t{XXH3_64bits(data, size)});
  const Result<VideoTrack> track = track_from_video_index(index.out, kFileBytes);
  if (!track) return 0;
  std::vector<bool> shown(track->packets.size());
  for (const uint32_t frame : track->frames) {
    if (shown.at(frame)) __builtin_trap();
    shown[frame] = true;
  }
  for (const MediaPacket& packet : track->packets) {
    if (packet.offset < 0 || uint64_t(packet.offset) + packet.size > kFileBytes) __builtin_trap();
  }
  // An index that was read can be written, and read again.
  if (!track_from_video_index(video_index_of(*track), kFileBytes)) __builtin_trap();
  return 0;
}
