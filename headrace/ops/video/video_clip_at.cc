// SPDX-License-Identifier: Apache-2.0
// VideoClipAt: the clip around a time given by a field of the record.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "headrace/base/number_text.h"
#include "headrace/base/registry.h"
#include "headrace/ops/video/video_clip_op.h"

namespace headrace {
namespace {

const ErrorCode kOutside{
    "HR0548", ErrorKind::kData, "time outside the video",
    "The record's clip time is not in its video: before the first frame, or after the end of the "
    "last. Times are seconds on the file's own clock."};

// REQUIRES: float64, float32 or int64, a scalar.
double number_of(const FieldValue& value) {
  if (value.bytes.empty()) return static_cast<double>(value.scalar);
  const auto as = [&]<class T>(T number) {
    std::memcpy(&number, value.bytes.data(), sizeof(T));
    return static_cast<double>(number);
  };
  if (value.dtype == DType::kInt64) return as(int64_t{});
  return value.dtype == DType::kFloat64 ? as(double{}) : as(float{});
}

class VideoClipAt final : public VideoClipOp {
 public:
  explicit VideoClipAt(const Arguments& arguments) : VideoClipOp("VideoClipAt", arguments) {
    set_at(arguments.text("time"));
  }

 private:
  Result<std::vector<double>> begins(const Cut& cut, Draws) const override {
    const double first = cut.track.seconds(cut.track.packets[cut.track.frames[0]].pts);
    const double time = number_of(*cut.at), from_first = time - first;
    if (!(from_first >= 0 && from_first <= seconds_shown(cut.track))) {
      return Error{.code = &kOutside,
                   .what = "\"" + form().at + "\" is " + shortest_text(time) +
                           " s, but the video is from " + shortest_text(first) + " s to " +
                           shortest_text(first + seconds_shown(cut.track)) + " s"};
    }
    const bool by_time = cut.places.places == 0;
    const double middle = by_time ? from_first : frame_played_at(cut.track, from_first);
    const double before = by_time ? span() / 2 : std::floor(span() / 2);
    return std::vector<double>{std::clamp(middle - before, 0.0, cut.places.last)};
  }
};

const OpRecord kVideoClipAt{
    .name = "VideoClipAt",
    .doc =
        "Extracts the clip around a time that is given by another field of the record.\n\n"
        "The video becomes (num_frames, C, H, W) uint8, RGB, upright, for transforms that treat "
        "its frames as images. The frame shown at that time is in the middle of the clip, as far "
        "as the ends of the video allow.",
    .page = {.unseen = "it works on videos: [video](video.md)"},
    .params = clip_params({{.name = "time",
                            .type = ParamType::kString,
                            .doc = "The field with the time: one number, in seconds.",
                            .required = true}}),
    .oracle = "the slice of the whole video around that time",
    .example = clip_example({{"time", std::string("time")}}),
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<VideoClipAt>(arguments);
    }};
const Register<OpRecord> registered_video_clip_at(kVideoClipAt);

}  // namespace
}  // namespace headrace
