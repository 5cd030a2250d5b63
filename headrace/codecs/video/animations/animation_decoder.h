// SPDX-License-Identifier: Apache-2.0
// Decodes animations as a VideoDecoder. It runs in this process, because the same decoders also
// read still pictures of these formats.
#pragma once

#include <memory>

#include "headrace/codecs/video/video_decoder.h"

namespace headrace {

// For tracks whose codec animation_of() supports.
std::unique_ptr<VideoDecoder> make_animation_decoder(const VideoDecoderOptions& options);

}  // namespace headrace
