// SPDX-License-Identifier: Apache-2.0
// Recognizes the container of a video file and reads its tables. Each container has a reader in its
// own file, which registers a VideoContainer.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/codecs/video/video_track.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

struct VideoContainer {
  std::string_view name;  // "mp4"
  std::string_view doc;
  std::vector<std::string_view> suffixes;  // ".mp4", lower case; a hint for listings
  bool (*sniff)(std::span<const uint8_t> first_bytes);
  // The first video track. Time is proportional to the file, memory to its tables.
  Result<VideoTrack> (*read)(const ByteRanges& file);
  // Whether the positions of all packets are in one place, so that a few small reads find them.
  bool has_table = false;
  // Whether all audio packets are copied into another container before the audio is decoded.
  bool rewrites_audio = false;
};

// How many leading bytes sniff() needs.
inline constexpr size_t kVideoSignature = 64;
// The container whose signature the content has, or null.
const VideoContainer* video_container_of(std::span<const uint8_t> bytes);
// Animations have the signatures of image formats, and are videos only if requested as such.
bool begins_like_video(std::span<const uint8_t> bytes);

// HR0360 if no reader recognizes the bytes.
Result<VideoTrack> read_video(const ByteRanges& file);

// Upper bound on the memory for its audio: all bytes of the file that are not frames.
size_t audio_working_bytes(const VideoTrack& track, const ByteRanges& file);

}  // namespace headrace
