// SPDX-License-Identifier: Apache-2.0
#include "headrace/ops/video/clip_frames.h"

#include <algorithm>
#include <cassert>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace headrace {
namespace {

const ErrorCode kOtherSize{
    "HR0376", ErrorKind::kData, "frame size changed",
    "A frame of this video differs in size from what the container declares. All frames of a clip "
    "must have the same size. `ffmpeg -i video -c:v libx264 out.mp4` makes them uniform."};

const ErrorCode kHighRange{
    "HR0377", ErrorKind::kUnsupported, "high dynamic range video",
    "This video encodes brightness with PQ or HLG, over a range that 8-bit RGB cannot hold: used "
    "as is, images look pale and flat. hdr=True of the transform that selects frames does so "
    "anyway; tone mapping (ffmpeg -vf zscale, tonemap) converts to standard dynamic range."};

const ErrorCode kManyFrames{
    "HR0378", ErrorKind::kResource, "frames exceed the memory limit",
    "The frames of this video need more memory than its container declares, and exceed one "
    "record's share of memory_limit. Use fewer frames per clip, smaller videos, or a higher "
    "memory_limit."};

// A recipe without steps accepts any orientation.
void turn(Recipe& picture, int quarter_turns) {
  const bool across = quarter_turns == 1 || quarter_turns == 2;
  const bool down = quarter_turns == 2 || quarter_turns == 3;
  [[maybe_unused]] const bool held = (quarter_turns % 2 == 0 || picture.transpose()) &&
                                     (!across || picture.flip_horizontal()) &&
                                     (!down || picture.flip_vertical());
  assert(held);
}

class FrameKeeper final : public FrameSink {
 public:
  FrameKeeper(const VideoTrack& track, bool hdr, size_t frames, Renderer& renderer)
      : track_(track),
        hdr_(hdr),
        count_(frames),
        max_bytes_(renderer.largest_value()),
        kept_(std::make_shared<KeptFrames>(
            frames, [&renderer](size_t bytes) { return renderer.values().of(bytes); })) {}

  Result<void> frame(size_t number, const YuvFrame& frame) override {
    if (frame.width != track_.width || frame.height != track_.height) {
      return Error{.code = &kOtherSize,
                   .what = "it is " + std::to_string(frame.width) + " x " +
                           std::to_string(frame.height) + ", but the video is " +
                           std::to_string(track_.width) + " x " + std::to_string(track_.height)};
    }
    const ColorTransfer transfer = frame.color.transfer;
    if (!hdr_ && (transfer == ColorTransfer::kPQ || transfer == ColorTransfer::kHLG)) {
      return Error{.code = &kHighRange,
                   .what = transfer == ColorTransfer::kPQ ? "its transfer is PQ (SMPTE ST 2084)"
                                                          : "its transfer is HLG (ARIB STD-B67)",
                   .hint = "hdr=True uses its values unchanged"};
    }
    const size_t bytes = KeptFrames::bytes_for(frame);
    bytes_ += bytes;
    if (std::max(bytes_, count_ * bytes) > max_bytes_) {
      return Error{
          .code = &kManyFrames,
          .what = std::to_string(count_) + " frames of " + std::to_string(bytes >> 10) + " KiB"};
    }
    kept_->keep(number, frame);
    return {};
  }

  std::shared_ptr<const KeptFrame> of(size_t number) const {
    return {kept_, &kept_->frame(number)};
  }

 private:
  const VideoTrack& track_;
  const bool hdr_;
  const size_t count_, max_bytes_;
  size_t bytes_ = 0;
  const std::shared_ptr<KeptFrames> kept_;  // shared: see FieldValue::frame
};

}  // namespace

Result<void> take_frames(const FieldValue& video, std::span<const uint32_t> frames, bool hdr,
                         std::span<const int> pictures, Record& record, Renderer& renderer) {
  const VideoTrack& track = *video.video.track;
  std::vector<uint32_t> wanted(frames.begin(), frames.end());
  std::ranges::sort(wanted);
  wanted.erase(std::ranges::unique(wanted).begin(), wanted.end());
  FrameKeeper keeping(track, hdr, wanted.size(), renderer);
  const FramePlan plan = plan_frames(track, video.video.file, wanted);
  Result<void> done =
      renderer.videos().decode(track, video.video.file, plan, keeping, video.video.decoding);
  if (!done) return done;
  for (size_t i = 0; i < pictures.size(); ++i) {
    const auto number = std::ranges::lower_bound(wanted, frames[i]) - wanted.begin();
    FieldValue& value = record.fields[size_t(pictures[i])];
    value.kind = FieldKind::kImage;
    value.frame = keeping.of(size_t(number));
    value.picture = Recipe(picture_of(*value.frame));
    turn(value.picture, track.quarter_turns);
  }
  return {};
}

}  // namespace headrace
