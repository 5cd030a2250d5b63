// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/video_decoders.h"

#include "headrace/base/clock.h"
#include "headrace/base/registry.h"

namespace headrace {
namespace {

// Null: decoded by libavcodec.
const OwnVideoDecoder* own_decoder_of(VideoCodec codec) {
  for (const OwnVideoDecoder* own : Registry<OwnVideoDecoder>::all()) {
    if (own->decodes(codec)) return own;
  }
  return nullptr;
}

// A decoder and the options that it was made with.
class MadeDecoder final : public VideoDecoder {
 public:
  MadeDecoder(std::unique_ptr<VideoDecoder> decoder, const VideoDecoderOptions& options)
      : decoder_(std::move(decoder)), options_(options) {}
  Result<void> decode(const VideoTrack& track, const ByteRanges& file, const FramePlan& plan,
                      FrameSink& sink) override {
    return decoder_->decode(track, file, plan, sink);
  }
  bool is_for(const VideoDecoderOptions& other) const {
    return options_.isolate == other.isolate && options_.seconds == other.seconds &&
           options_.max_pixels == other.max_pixels;
  }
  void stop_by(const std::atomic<bool>* stop) override { decoder_->stop_by(stop); }

 private:
  std::unique_ptr<VideoDecoder> decoder_;
  const VideoDecoderOptions options_;
};

}  // namespace

Result<void> VideoDecoders::decode(const VideoTrack& track, const ByteRanges& file,
                                   const FramePlan& plan, FrameSink& sink,
                                   const VideoDecoderOptions& options) {
  const OwnVideoDecoder* const ours = own_decoder_of(track.codec);
  std::unique_ptr<VideoDecoder>& decoder = ours ? animations_ : decoder_;
  const auto* const made = dynamic_cast<MadeDecoder*>(decoder.get());
  if (made && !made->is_for(options)) decoder.reset();  // for a loader with different options
  if (!decoder) {
    Result<std::unique_ptr<VideoDecoder>> begun =
        ours ? ours->make(options) : make_video_decoder(options);
    if (!begun) return std::move(begun.error());
    decoder = std::make_unique<MadeDecoder>(std::move(*begun), options);
  }
  decoder->stop_by(options.stop);
  const double begin = now();
  Result<void> done = decoder->decode(track, file, plan, sink);
  seconds_ += now() - begin;
  return done;
}

}  // namespace headrace
