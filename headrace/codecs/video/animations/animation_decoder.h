// SPDX-License-Identifier: Apache-2.0
// Animations through the interface of all videos. In this process, because the same decoders also
// read still pictures of the format.
#pragma once

#include <memory>

#include "headrace/codecs/video/video_decoder.h"

namespace headrace {

// For tracks whose codec animation_of() supports.
std::unique_ptr<VideoDecoder> make_animation_decoder(const VideoDecoderOptions& options);

}  // namespace headrace
