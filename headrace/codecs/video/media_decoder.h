// SPDX-License-Identifier: Apache-2.0
// The VideoDecoder that uses a separate process, headrace-av.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "headrace/base/error.h"
#include "headrace/codecs/video/video_decoder.h"

namespace headrace {

// Memory for decoding the track in the other process: the library, and the frames that it holds.
size_t video_working_bytes(const VideoTrack& track);

// make_video_decoder() with a custom program.
Result<std::unique_ptr<VideoDecoder>> make_media_decoder(const VideoDecoderOptions& options,
                                                         const std::string& program);

}  // namespace headrace
