// SPDX-License-Identifier: Apache-2.0
// UniformVideoClips and CenterVideoClip: clips of a video at positions computed from its length.
#include "headrace/base/registry.h"
#include "headrace/ops/video/video_clip_op.h"

namespace headrace {
namespace {

class UniformVideoClips final : public VideoClipOp {
 public:
  using VideoClipOp::VideoClipOp;

 private:
  // Like torch.linspace: from both ends, truncated to integers for frames.
  Result<std::vector<double>> begins(const Cut& cut, Draws) const override {
    const int64_t clips = clip_count();
    const double last = cut.places.last;
    const double step = clips > 1 ? last / static_cast<double>(clips - 1) : 0;
    std::vector<double> out;
    for (int64_t i = 0; i < clips; ++i) {
      out.push_back(2 * i < clips ? step * static_cast<double>(i)
                                  : last - step * static_cast<double>(clips - i - 1));
      if (cut.places.places > 0) out.back() = static_cast<double>(static_cast<int64_t>(out.back()));
    }
    return out;
  }
};

class CenterVideoClip final : public VideoClipOp {
 public:
  using VideoClipOp::VideoClipOp;

 private:
  Result<std::vector<double>> begins(const Cut& cut, Draws) const override {
    if (cut.places.places == 0) return std::vector<double>{cut.places.last / 2};
    return std::vector<double>{static_cast<double>((cut.places.places - 1) / 2)};
  }
};

const OpRecord kUniformVideoClips{
    .name = "UniformVideoClips",
    .doc =
        "Extracts evenly spaced clips from a video: the first starts with the video, the last ends "
        "with it.\n\n"
        "The video becomes (num_clips, num_frames, C, H, W) uint8, RGB, upright, for transforms "
        "that treat its frames as images. Frames that several clips share are decoded once.",
    .page = {.unseen = "it works on videos: [video](video.md)"},
    .params = clip_params({{.name = "num_clips",
                            .type = ParamType::kInt,
                            .doc = "Number of clips per video.",
                            .required = true,
                            .minimum = 1,
                            .maximum = 1024}}),
    .oracle = "torchcodec's clips_at_regular_indices, the same frames",
    .example = clip_example({{"num_clips", int64_t{4}}}),
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<UniformVideoClips>("UniformVideoClips", arguments);
    }};
const Register<OpRecord> registered_uniform_video_clips(kUniformVideoClips);

const OpRecord kCenterVideoClip{
    .name = "CenterVideoClip",
    .doc =
        "Extracts the clip in the middle of a video.\n\n"
        "The video becomes (num_frames, C, H, W) uint8, RGB, upright, for transforms that treat "
        "its frames as images.",
    .page = {.unseen = "it works on videos: [video](video.md)"},
    .params = clip_params({}),
    .oracle =
        "the slice of the whole video with as many frames before it as after it, or one fewer",
    .example = clip_example({}),
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<CenterVideoClip>("CenterVideoClip", arguments);
    }};
const Register<OpRecord> registered_center_video_clip(kCenterVideoClip);

}  // namespace
}  // namespace headrace
