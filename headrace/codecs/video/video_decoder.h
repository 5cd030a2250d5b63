// SPDX-License-Identifier: Apache-2.0
// Decodes packets to frames, in the process headrace-av or, for animations, in this process;
// callers use both in the same way. A decoder is for one thread, and keeps its library's state from
// one call to the next. A thread keeps its decoders between videos; each is started on first use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "headrace/base/error.h"
#include "headrace/codecs/media/media_options.h"
#include "headrace/codecs/video/frame_plan.h"
#include "headrace/codecs/video/video_track.h"
#include "headrace/codecs/video/yuv_frame.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

class FrameSink {
 public:
  virtual ~FrameSink() = default;
  // The frame of packet plan.kept[number]; its planes are invalid after the call. Called once per
  // frame, in the decoder's output order. An error ends the decoding and is returned by it.
  virtual Result<void> frame(size_t number, const YuvFrame& frame) = 0;
};

class VideoDecoder {
 public:
  virtual ~VideoDecoder() = default;
  // A packet may have no frame that is kept, or be fed only for what a decoder learns from it
  // (packet 0 of old x264 streams), so frames are identified by their packet. Returns all frames of
  // the plan, or an error: HR0367 if a frame was not output, HR0368 if the decoder found damage,
  // HR0369 if it died or timed out. REQUIRES: `file` is what the track was read from.
  virtual Result<void> decode(const VideoTrack& track, const ByteRanges& file,
                              const FramePlan& plan, FrameSink& sink) = 0;
  // Sets VideoDecoderOptions::stop for later calls: a thread's decoder serves any loader.
  virtual void set_stop_flag(const std::atomic<bool>* stop) { (void)stop; }
};

struct VideoDecoderOptions : MediaOptions {
  int64_t max_pixels = int64_t{1} << 26;  // of a frame
};

// HR0370 if no decoder is available: the message says what is missing.
Result<std::unique_ptr<VideoDecoder>> make_video_decoder(const VideoDecoderOptions& options);

// A built-in decoder that needs no video library: one per family of codecs, each in its own folder,
// which registers it.
struct BuiltInVideoDecoder {
  std::string_view name;  // "animation"
  bool (*decodes)(VideoCodec codec);
  std::unique_ptr<VideoDecoder> (*make)(const VideoDecoderOptions& options);
};

// The decoders of one thread.
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

// Upper bound on a frame's memory before decoding, from the size and profile that the container
// specifies. A stream that differs from them is detected when its frames are output.
size_t max_frame_bytes(const VideoTrack& track);

}  // namespace headrace
