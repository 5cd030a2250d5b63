// SPDX-License-Identifier: Apache-2.0
// Decoders that a thread keeps between videos; each is started on first use.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "headrace/codecs/video/video_decoder.h"

namespace headrace {

// A built-in decoder that needs no video library: one per family of codecs, each in its own folder,
// which registers it.
struct OwnVideoDecoder {
  std::string_view name;  // "animation"
  bool (*decodes)(VideoCodec codec);
  std::unique_ptr<VideoDecoder> (*make)(const VideoDecoderOptions& options);
};

class VideoDecoders {
 public:
  // Like VideoDecoder::decode(), with a decoder for the track's codec. A new decoder is made if
  // `options` other than `stop` have changed.
  Result<void> decode(const VideoTrack& track, const ByteRanges& file, const FramePlan& plan,
                      FrameSink& sink, const VideoDecoderOptions& options);
  // Uses this decoder, regardless of the options; for tests.
  void use(std::unique_ptr<VideoDecoder> decoder) { decoder_ = std::move(decoder); }
  // Decoding time since the last call.
  double take_seconds() { return std::exchange(seconds_, 0); }

 private:
  std::unique_ptr<VideoDecoder> decoder_, animations_;
  double seconds_ = 0;
};

}  // namespace headrace
