// SPDX-License-Identifier: Apache-2.0
// Packets -> frames. The decoder is another process, or, if the user trusts the files, this one;
// callers cannot tell. A decoder is for one thread, and keeps its library's state from one call to
// the next.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

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
  // The frame that packet plan.kept[number] brings; its planes are gone after the call. Each once,
  // in the order in which the decoder gives them. An error ends the decoding, and is what it gives.
  virtual Result<void> frame(size_t number, const YuvFrame& frame) = 0;
};

class VideoDecoder {
 public:
  virtual ~VideoDecoder() = default;
  // A packet may bring no frame that is kept, or be fed for what a decoder learns from it alone
  // (packet 0 of old x264's), so frames are told by the packet that they come from.
  // All frames of the plan, or an error: HR0367 where one did not come out, HR0368 where the
  // decoder found damage, HR0369 where it died or took longer than it may. REQUIRES: `file` is what
  // the track was read from.
  virtual Result<void> decode(const VideoTrack& track, const ByteRanges& file,
                              const FramePlan& plan, FrameSink& sink) = 0;
  // VideoDecoderOptions::stop of the calls from here on: a thread's decoder serves any loader.
  virtual void stop_by(const std::atomic<bool>* stop) { (void)stop; }
};

struct VideoDecoderOptions : MediaOptions {
  int64_t max_pixels = int64_t{1} << 26;  // of a frame
};

// HR0370 where there is nothing to decode with: the message names what is missing.
Result<std::unique_ptr<VideoDecoder>> make_video_decoder(const VideoDecoderOptions& options);

}  // namespace headrace
