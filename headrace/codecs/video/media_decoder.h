// SPDX-License-Identifier: Apache-2.0
// The VideoDecoder that uses a separate process, headrace-av.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "headrace/base/error.h"
#include "headrace/codecs/video/video_decoder.h"

namespace headrace {

// Memory that headrace-av needs to decode the track: the library, and the frames that it holds.
size_t video_working_bytes(const VideoTrack& track);

// Like make_video_decoder(), with this program in place of media_program().
Result<std::unique_ptr<VideoDecoder>> make_media_decoder(const VideoDecoderOptions& options,
                                                         const std::string& program);

}  // namespace headrace
