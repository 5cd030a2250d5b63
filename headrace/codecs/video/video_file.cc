// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/video_file.h"

#include <algorithm>

#include "headrace/base/registry.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/media/container_errors.h"

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
  return video_container_of(bytes) != nullptr && !begins_like_picture(bytes);
}

Result<VideoTrack> read_video(const ByteRanges& file) {
  const Result<std::span<const uint8_t>> first = file.at(0, kVideoSignature);
  if (!first) return first.error();
  const VideoContainer* const container = video_container_of(*first);
  if (container) return container->read(file);
  return unknown_video(file.size() == 0 ? "it has no bytes" : "its first bytes are of no container",
                       "files of another container are put into this one once: ffmpeg -i in -c "
                       "copy out.mkv");
}

}  // namespace headrace
