// SPDX-License-Identifier: Apache-2.0

#include <cassert>
#include <chrono>
#include <string>

#include "headrace/base/number_text.h"
#include "headrace/base/registry.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/media/media_errors.h"
#include "headrace/codecs/video/animations/animation.h"
#include "headrace/codecs/video/video_decoder.h"

namespace headrace {
namespace {

const ErrorCode kSlowAnimation{
    "HR0379", ErrorKind::kResource, "animation too expensive to decode",
    "Decoding the requested frames of an animation exceeded the time limit: a small file can "
    "describe very many large frames. Raise the limit if the file is genuine, or skip it."};

YuvFrame frame_of(const Canvas& canvas) {
  YuvFrame frame{.width = canvas.width,
                 .height = canvas.height,
                 .chroma_x = 0,
                 .chroma_y = 0,
                 .color = {.matrix = ColorMatrix::kIdentity, .range = ColorRange::kFull}};
  frame.plane = {canvas.plane(1), canvas.plane(2), canvas.plane(0)};  // green, blue, red
  frame.stride.fill(canvas.width);
  return frame;
}

class AnimationDecoder final : public VideoDecoder {
 public:
  explicit AnimationDecoder(const VideoDecoderOptions& options) : options_(options) {}

  // No state is kept between calls: plans begin at a key frame.
  Result<void> decode(const VideoTrack& track, const ByteRanges& file, const FramePlan& plan,
                      FrameSink& sink) override {
    const AnimationRecord* const record = animation_of(track.codec);
    assert(record);
    if (int64_t{track.width} * track.height > options_.max_pixels) {
      return too_large_image(record->name);
    }
    const std::unique_ptr<Animation> animation = record->make(track);
    const Clock::time_point begin = Clock::now();
    size_t kept = 0;
    for (const Feed& feed : plan.feeds) {
      if (feed.restart) animation->restart();
      const MediaPacket& packet = track.packets[feed.packet];
      const Result<std::span<const uint8_t>> bytes =
          file.at(static_cast<uint64_t>(packet.offset), packet.size);
      if (!bytes) return bytes.error();
      const Result<void> played = animation->play(*bytes);
      if (!played) {
        Error error = played.error();
        error.where.offset = packet.offset;
        return error;
      }
      // Frames are shown in file order.
      if (kept < plan.kept.size() && plan.kept[kept] == feed.packet) {
        if (Result<void> taken = sink.frame(kept++, frame_of(animation->canvas())); !taken) {
          return taken;
        }
      }
      if (options_.stop && options_.stop->load(std::memory_order_relaxed)) {
        return ended_media_process("its decoding was canceled");
      }
      if (std::chrono::duration<double>(Clock::now() - begin).count() > options_.seconds) {
        return Error{.code = &kSlowAnimation,
                     .what = "the time limit of " + shortest_text(options_.seconds) +
                             " seconds "
                             "was reached at packet " +
                             std::to_string(feed.packet),
                     .where = Where{.offset = packet.offset}};
      }
    }
    assert(kept == plan.kept.size());
    return {};
  }

  void set_stop_flag(const std::atomic<bool>* stop) override { options_.stop = stop; }

 private:
  using Clock = std::chrono::steady_clock;
  VideoDecoderOptions options_;
};

}  // namespace

const AnimationRecord* animation_of(VideoCodec codec) {
  for (const AnimationRecord* record : Registry<AnimationRecord>::all()) {
    if (record->codec == codec) return record;
  }
  return nullptr;
}

std::unique_ptr<VideoDecoder> make_animation_decoder(const VideoDecoderOptions& options) {
  return std::make_unique<AnimationDecoder>(options);
}

namespace {

const BuiltInVideoDecoder kAnimations{
    .name = "animation",
    .decodes = [](VideoCodec codec) { return animation_of(codec) != nullptr; },
    .make = make_animation_decoder};
const Register<BuiltInVideoDecoder> registered_animations(kAnimations);

}  // namespace
}  // namespace headrace
