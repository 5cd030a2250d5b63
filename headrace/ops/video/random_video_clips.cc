// SPDX-License-Identifier: Apache-2.0
// RandomVideoClips: clips of a video from random positions.
#include "headrace/base/registry.h"
#include "headrace/ops/video/video_clip_op.h"

namespace headrace {
namespace {

class RandomVideoClips final : public VideoClipOp {
 public:
  using VideoClipOp::VideoClipOp;

 private:
  Result<std::vector<double>> begins(const Cut& cut, Draws draws) const override {
    std::vector<double> out;
    const ClipPlaces& places = cut.places;
    for (int64_t i = 0; i < clip_count(); ++i) {
      out.push_back(places.places > 0 ? static_cast<double>(draws.below(places.places))
                                      : draws.uniform() * places.last);
    }
    return out;
  }
};

const OpRecord kRandomVideoClips{
    .name = "RandomVideoClips",
    .doc =
        "Extracts random clips from a video.\n\n"
        "The video becomes (num_frames, C, H, W) uint8, RGB, upright; with num_clips (num_clips, "
        "num_frames, C, H, W). All later transforms treat the frames like images, with the same "
        "random parameters for all frames of a record. Every position at which the clip fits into "
        "the video is equally probable; a clip of a shorter video begins at its first frame and is "
        "padded according to policy=. Only the frames in the clips and those that they depend on "
        "are decoded, once for all clips.",
    .page = {.unseen = "it works on videos: [video](video.md)"},
    .params = clip_params({{.name = "num_clips",
                            .type = ParamType::kInt,
                            .doc = "Clips per video, drawn independently. None: "
                                   "one, without an axis for clips.",
                            .minimum = 1,
                            .maximum = 1024}}),
    .oracle =
        "torchcodec's clips_at_random_indices: the same distribution of positions; frames as in "
        "a sequential decode, converted by swscale's default, bit for bit",
    .example = clip_example({{"num_clips", int64_t{2}}}),
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<RandomVideoClips>("RandomVideoClips", arguments);
    }};
const Register<OpRecord> registered_random_video_clips(kRandomVideoClips);

}  // namespace
}  // namespace headrace
