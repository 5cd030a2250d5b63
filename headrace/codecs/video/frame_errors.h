// SPDX-License-Identifier: Apache-2.0
// Errors of decoding a track's packets into frames.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "headrace/base/error.h"
#include "headrace/codecs/media/media_protocol.h"
#include "headrace/codecs/video/video_track.h"

namespace headrace {

// HR0367. `packet`: its number in the track; the message has its position in the file and the
// number of its frame. `bytes`: of the packet, to detect one that has a single field.
Error missing_frame(const VideoTrack& track, uint32_t packet, std::span<const uint8_t> bytes);
Error damaged_video(const VideoTrack& track, uint32_t packet, std::string what);  // HR0368

// Why a frame could not be decoded: HR0368, HR0370 or HR0371.
Error failure_of(const media::Reply& reply, const VideoTrack& track);

}  // namespace headrace
