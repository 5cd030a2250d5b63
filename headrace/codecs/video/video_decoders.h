// SPDX-License-Identifier: Apache-2.0
// Decoders that a thread keeps between videos; each is started when it is first needed.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "headrace/codecs/video/video_decoder.h"

namespace headrace {

// A decoder of ours, which needs no library of video: one a family of codecs, in a folder of its
// own, which registers it.
struct OwnVideoDecoder {
  std::string_view name;  // "animation"
  bool (*decodes)(VideoCodec codec);
  std::unique_ptr<VideoDecoder> (*make)(const VideoDecoderOptions& options);
};

class VideoDecoders {
 public:
  // As VideoDecoder::decode, by a decoder for the track's codec. `options`: the same in every call,
  // or but for `stop` a new decoder is made.
  Result<void> decode(const VideoTrack& track, const ByteRanges& file, const FramePlan& plan,
                      FrameSink& sink, const VideoDecoderOptions& options);
  // Whatever the options say; for tests.
  void use(std::unique_ptr<VideoDecoder> decoder) { decoder_ = std::move(decoder); }
  // Decoding time since the last call.
  double take_seconds() { return std::exchange(seconds_, 0); }

 private:
  std::unique_ptr<VideoDecoder> decoder_, animations_;
  double seconds_ = 0;
};

}  // namespace headrace
