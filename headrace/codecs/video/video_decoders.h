// SPDX-License-Identifier: Apache-2.0
// What one thread keeps between videos: decoders, which are started when one is first needed.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "headrace/codecs/video/video_decoder.h"

namespace headrace {

class VideoDecoders {
 public:
  // As VideoDecoder::decode, by a decoder for the track's codec. `options`: the same in every call,
  // or but for `stop` a new decoder is made.
  Result<void> decode(const VideoTrack& track, const ByteRanges& file, const FramePlan& plan,
                      FrameSink& sink, const VideoDecoderOptions& options);
  // Whatever the options say; for tests.
  void use(std::unique_ptr<VideoDecoder> decoder) { decoder_ = std::move(decoder); }
  // What decoding took since the last call.
  double take_seconds() { return std::exchange(seconds_, 0); }

 private:
  std::unique_ptr<VideoDecoder> decoder_, animations_;
  double seconds_ = 0;
};

}  // namespace headrace
