// SPDX-License-Identifier: Apache-2.0
// Decoders of ours, which need no library of video: one a family of codecs, in a folder of its own,
// which registers an OwnVideoDecoder.
#pragma once

#include <memory>
#include <string_view>

#include "headrace/codecs/video/video_decoder.h"

namespace headrace {

struct OwnVideoDecoder {
  std::string_view name;  // "animation"
  bool (*decodes)(VideoCodec codec);
  std::unique_ptr<VideoDecoder> (*make)(const VideoDecoderOptions& options);
};

}  // namespace headrace
