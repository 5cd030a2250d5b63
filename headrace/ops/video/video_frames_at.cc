// SPDX-License-Identifier: Apache-2.0
// VideoFramesAt: the frames at the times given by the record.
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/codecs/video/frame_times.h"
#include "headrace/ops/picture_op.h"
#include "headrace/ops/video/clip_frames.h"

namespace headrace {
namespace {

const ErrorCode kNoFrameThere{
    "HR0550", ErrorKind::kData, "no frame at this time",
    "No frame of the video starts within tolerance_s of a time in the record. The times do not "
    "match the video: it has a different frame rate, was truncated or re-encoded, or the "
    "timestamps were recorded incorrectly. Times are seconds on the file's own clock. A larger "
    "tolerance_s= accepts the nearest frame; on_error= skips such records."};

// REQUIRES: float64, float32 or int64.
std::vector<double> numbers_of(const FieldValue& value) {
  if (value.bytes.empty()) return {static_cast<double>(value.scalar)};
  const auto all = [&]<class T>(T number) {
    std::vector<double> out(value.bytes.size() / sizeof(T));
    for (size_t i = 0; i < out.size(); ++i) {
      std::memcpy(&number, value.bytes.data() + i * sizeof(T), sizeof(T));
      out[i] = static_cast<double>(number);
    }
    return out;
  };
  if (value.dtype == DType::kInt64) return all(int64_t{});
  return value.dtype == DType::kFloat64 ? all(double{}) : all(float{});
}

class VideoFramesAt final : public Op {
 public:
  explicit VideoFramesAt(const Arguments& arguments)
      : tolerance_(arguments.number("tolerance_s")), hdr_(arguments.flag("hdr")) {
    form_.at_each = true;
    form_.channels_before_time = arguments.text("layout") == "CTHW";
    if (!arguments.is_none("times")) form_.at = arguments.text("times");
  }
  bool takes(FieldKind kind) const override { return kind == FieldKind::kVideo; }
  bool measures() const override { return true; }
  const ClipForm* clip() const override { return &form_; }

  std::unique_ptr<Op> with_times(std::string field, const Shape& shape) const override {
    auto out = std::make_unique<VideoFramesAt>(*this);
    out->form_.at = std::move(field);
    out->form_.frames = shape.empty() ? 1 : shape[0];
    out->form_.is_image = shape.empty();
    return out;
  }

  void plan(FieldState& video) const override {
    if (video.kind == FieldKind::kVideo) return;
    raise_invalid_argument("VideoFramesAt",
                           "\"" + video.name + "\" is " +
                               (video.clip_frame < 0 ? text_of(video) : "a clip already") +
                               ", but frames are extracted from videos",
                           "kinds={\"" + video.name + "\": \"video\"} declares files to be videos");
  }

  Result<void> apply(OpContext& context) const override {
    std::vector<FieldValue>& values = context.record.fields;
    const FieldValue& video = values[size_t(context.fields[0])];
    const VideoTrack& track = *video.video.track;
    const std::vector<double> times = numbers_of(values[size_t(context.fields.back())]);
    const std::span<const int> pictures = context.fields.subspan(1, context.fields.size() - 2);
    if (times.size() != pictures.size()) {
      return Error{.code = &kNoFrameThere,
                   .what = "\"" + form_.at + "\" has " + std::to_string(times.size()) +
                           " times, but " + std::to_string(pictures.size()) +
                           " frames were planned"};
    }
    std::vector<uint32_t> frames;
    for (const double time : times) {
      const size_t frame = nearest_frame(track, time);
      const double begin = begin_of_frame(track, frame);
      if (!(std::abs(begin - time) <= tolerance_)) return missing(track, time, frame);
      frames.push_back(static_cast<uint32_t>(frame));
    }
    return take_frames(video, frames, hdr_, pictures, context.record, context.renderer);
  }

 private:
  Error missing(const VideoTrack& track, double time, size_t nearest) const {
    const size_t last = track.frames.size() - 1;
    return {.code = &kNoFrameThere,
            .what = "\"" + form_.at + "\" has " + std::to_string(time) +
                    " s, and the nearest frame, " + std::to_string(nearest) + ", begins at " +
                    std::to_string(begin_of_frame(track, nearest)) + " s; the last one, " +
                    std::to_string(last) + ", at " + std::to_string(begin_of_frame(track, last)) +
                    " s; tolerance_s is " + std::to_string(tolerance_)};
  }

  ClipForm form_;
  double tolerance_ = 0;
  bool hdr_ = false;
};

const OpRecord kVideoFramesAt{
    .name = "VideoFramesAt",
    .doc =
        "Extracts the frames of a video at the times given by a field of the record, in any "
        "order.\n\n"
        "The field has one time in seconds per frame, (T,), and the video becomes (T, C, H, W) "
        "uint8, RGB, upright; or it is a single time, and the video becomes an image, (C, H, W). "
        "The frame that begins nearest to each time is used; one more than tolerance_s away is an "
        "error (HR0550). The field of times is removed. hr.lerobot makes such records.",
    .page = {.unseen = "it works on videos: [video](video.md)"},
    .params = {{.name = "times",
                .type = ParamType::kString,
                .doc = "The field with the times, in seconds on the file's own clock; None: "
                       "`<video>_times` of each video."},
               {.name = "tolerance_s",
                .type = ParamType::kFloat,
                .doc = "Maximum distance between a time and the start of its frame, in seconds.",
                .fallback = 1e-4,
                .minimum = 0.0,
                .maximum = 1e6},
               {.name = "layout",
                .type = ParamType::kString,
                .doc = "Order of the axes. Frames are contiguous in memory, so \"CTHW\" is a view "
                       "with strides.",
                .fallback = std::string("TCHW"),
                .choices = {"TCHW", "CTHW"}},
               {.name = "hdr",
                .type = ParamType::kBool,
                .doc = "Whether to interpret HDR frames (PQ, HLG) as if they were SDR. Otherwise "
                       "such a video is a bad record.",
                .fallback = false}},
    .oracle = "the frames of the whole video whose times are nearest",
    .example = {{"times", std::string("seconds")}, {"tolerance_s", 0.01}, {"hdr", true}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<VideoFramesAt>(arguments);
    }};
const Register<OpRecord> registered_video_frames_at(kVideoFramesAt);

}  // namespace
}  // namespace headrace
