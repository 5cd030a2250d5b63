// SPDX-License-Identifier: Apache-2.0
// How the pictures of an MP4 track are coded: an entry of its stsd box (ISO/IEC 14496-12, 8.5.2 and
// 12.1.3; 14496-15 for H.264 and HEVC; the specifications of VP9 and AV1 in ISOBMFF).
#pragma once

#include <cstdint>
#include <span>

#include "headrace/base/error.h"
#include "headrace/codecs/video/video_track.h"

namespace headrace {

// Reads the entry into the track: codec, size, color, parameters. `number` counts from 1. HR0363 if
// it has another codec, is encrypted, or if `dinf` says that the media data is in another file.
Result<void> read_mp4_sample_entry(std::span<const uint8_t> stsd, std::span<const uint8_t> dinf,
                                   uint32_t number, VideoTrack& track);

}  // namespace headrace
