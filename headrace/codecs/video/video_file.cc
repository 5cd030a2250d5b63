// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/video_file.h"

#include <algorithm>

#include "headrace/base/registry.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/media/media_errors.h"

namespace headrace {

const VideoContainer* video_container_of(std::span<const uint8_t> bytes) {
  static const std::vector<const VideoContainer*> containers = Registry<VideoContainer>::all();
  bytes = bytes.first(std::min(bytes.size(), kVideoSignature));
  for (const VideoContainer* container : containers) {
    if (container->sniff(bytes)) return container;
  }
  return nullptr;
}

bool begins_like_video(std::span<const uint8_t> bytes) {
  return video_container_of(bytes) != nullptr && !begins_like_image(bytes);
}

Result<VideoTrack> read_video(const ByteRanges& file) {
  const Result<std::span<const uint8_t>> first = file.at(0, kVideoSignature);
  if (!first) return first.error();
  const VideoContainer* const container = video_container_of(*first);
  if (container) return container->read(file);
  if (file.size() == 0) {
    return unknown_video("the file is empty", "download the file again, or skip it");
  }
  return unknown_video("its first bytes match no video container",
                       "if it is a video (MPEG-TS, a raw stream), remux it once: ffmpeg -fflags "
                       "+genpts -i FILE -c copy out.mp4; otherwise skip it");
}

size_t audio_working_bytes(const VideoTrack& track, const ByteRanges& file) {
  constexpr size_t kDecoder = size_t{8} << 20;
  const Result<std::span<const uint8_t>> first = file.at(0, kVideoSignature);
  const VideoContainer* const container = first ? video_container_of(*first) : nullptr;
  if (!container || !container->rewrites_audio) return kDecoder;
  uint64_t pictures = 0;
  for (const MediaPacket& packet : track.packets) pictures += packet.size;
  const uint64_t others = file.size() - std::min(pictures, file.size());
  return kDecoder + 3 * size_t(std::min(others, ByteRanges::kMax));
}

}  // namespace headrace
