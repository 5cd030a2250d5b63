// SPDX-License-Identifier: Apache-2.0
// Errors between a track's packets and its frames.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "headrace/base/error.h"
#include "headrace/codecs/media/media_protocol.h"
#include "headrace/codecs/video/video_track.h"

namespace headrace {

// `packet`: of the track; the message has its position and its frame's number. HR0367; `bytes` are
// the packet's, to detect a packet with a single field.
Error missing_frame(const VideoTrack& track, uint32_t packet, std::span<const uint8_t> bytes);
Error damaged_video(const VideoTrack& track, uint32_t packet, std::string what);  // HR0368

// Why a frame could not be decoded: HR0368, HR0370 or HR0371.
Error failure_of(const media::Reply& reply, const VideoTrack& track);

}  // namespace headrace
