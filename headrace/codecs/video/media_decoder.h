// SPDX-License-Identifier: Apache-2.0
// The VideoDecoder that uses a separate process, headrace-av, and the conversion of that process's
// replies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "headrace/base/error.h"
#include "headrace/codecs/media/media_protocol.h"
#include "headrace/codecs/video/video_decoder.h"
#include "headrace/codecs/video/video_track.h"
#include "headrace/codecs/video/yuv_frame.h"

namespace headrace {

// Memory that headrace-av needs to decode the track: the library, and the frames that it holds.
size_t video_working_bytes(const VideoTrack& track);

// Like make_video_decoder(), with this program in place of media_program().
Result<std::unique_ptr<VideoDecoder>> make_media_decoder(const VideoDecoderOptions& options,
                                                         const std::string& program);

// Converts replies of the media process to frames or errors. Replies are untrusted bytes, because a
// hostile file may control that process; they are copies, so it can no longer change them.
//
// A frame whose planes are in `memory`, including the readable bytes after rows. HR0371 if its size
// differs from the size of the track; HR0369 if the reply is invalid.
Result<YuvFrame> yuv_frame_of(const media::Frame& frame, std::span<const uint8_t> memory,
                              const VideoTrack& track);

// HR0367. `packet`: its number in the track; the message has its position in the file and the
// number of its frame. `bytes`: of the packet, to detect one that has a single field.
Error missing_frame(const VideoTrack& track, uint32_t packet, std::span<const uint8_t> bytes);
Error damaged_video(const VideoTrack& track, uint32_t packet, std::string what);  // HR0368

// Why a frame could not be decoded: HR0368, HR0370 or HR0371.
Error failure_of(const media::Reply& reply, const VideoTrack& track);

}  // namespace headrace
