// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/video_decoder.h"

#include <algorithm>

#include "headrace/base/clock.h"
#include "headrace/base/registry.h"

namespace headrace {
namespace {

// Null: decoded by libavcodec.
const BuiltInVideoDecoder* built_in_decoder_of(VideoCodec codec) {
  for (const BuiltInVideoDecoder* own : Registry<BuiltInVideoDecoder>::all()) {
    if (own->decodes(codec)) return own;
  }
  return nullptr;
}

// A decoder and the options that it was made with.
class DecoderWithOptions final : public VideoDecoder {
 public:
  DecoderWithOptions(std::unique_ptr<VideoDecoder> decoder, const VideoDecoderOptions& options)
      : decoder_(std::move(decoder)), options_(options) {}
  Result<void> decode(const VideoTrack& track, const ByteRanges& file, const FramePlan& plan,
                      FrameSink& sink) override {
    return decoder_->decode(track, file, plan, sink);
  }
  bool is_for(const VideoDecoderOptions& other) const {
    return options_.isolate == other.isolate && options_.seconds == other.seconds &&
           options_.max_pixels == other.max_pixels;
  }
  void set_stop_flag(const std::atomic<bool>* stop) override { decoder_->set_stop_flag(stop); }

 private:
  std::unique_ptr<VideoDecoder> decoder_;
  const VideoDecoderOptions options_;
};

// Bytes of two pixels, luma and chroma: 3 for 8-bit 4:2:0, 12 for 16-bit 4:4:4.
constexpr size_t kUsual = 3, kMax = 12;

size_t bytes_of_two_pixels(const VideoTrack& track) {
  const std::vector<uint8_t>& said = track.parameters;
  const auto byte = [&](size_t at) { return at < said.size() ? said[at] : uint8_t{0xff}; };
  switch (track.codec) {
    case VideoCodec::kH264: {  // avcC: version, profile
      const uint8_t profile = byte(1);
      const bool usual = profile == 66 || profile == 77 || profile == 88 || profile == 100;
      return usual ? kUsual : profile == 110 ? 2 * kUsual : kMax;
    }
    case VideoCodec::kHEVC: {  // hvcC: version, profile space and tier and profile
      const int profile = byte(1) & 0x1f;
      return profile == 1 || profile == 3 ? kUsual : profile == 2 ? 2 * kUsual : kMax;
    }
    case VideoCodec::kVP8:
    case VideoCodec::kMPEG4:
      return kUsual;
    case VideoCodec::kMJPEG:
    case VideoCodec::kGIF:
    case VideoCodec::kWebP:
      return 2 * kUsual;
    case VideoCodec::kVP9:  // profile 0 is 8-bit 4:2:0; vpcC may be missing
    case VideoCodec::kAV1:
      return said.empty() ? kUsual : kMax;
  }
  return kMax;
}

}  // namespace

Result<void> VideoDecoders::decode(const VideoTrack& track, const ByteRanges& file,
                                   const FramePlan& plan, FrameSink& sink,
                                   const VideoDecoderOptions& options) {
  const BuiltInVideoDecoder* const ours = built_in_decoder_of(track.codec);
  std::unique_ptr<VideoDecoder>& decoder = ours ? animations_ : decoder_;
  const auto* const made = dynamic_cast<DecoderWithOptions*>(decoder.get());
  if (made && !made->is_for(options)) decoder.reset();  // for a loader with different options
  if (!decoder) {
    Result<std::unique_ptr<VideoDecoder>> begun =
        ours ? ours->make(options) : make_video_decoder(options);
    if (!begun) return std::move(begun.error());
    decoder = std::make_unique<DecoderWithOptions>(std::move(*begun), options);
  }
  decoder->set_stop_flag(options.stop);
  const double begin = now();
  Result<void> done = decoder->decode(track, file, plan, sink);
  seconds_ += now() - begin;
  return done;
}

size_t max_frame_bytes(const VideoTrack& track) {
  // Decoders allocate whole blocks, and rows padded for vectors.
  const size_t width = (static_cast<size_t>(std::max(track.width, 1)) + 127) / 64 * 64;
  const size_t height = (static_cast<size_t>(std::max(track.height, 1)) + 15) / 16 * 16;
  return width * height * bytes_of_two_pixels(track) / 2 + 4096;
}

}  // namespace headrace
