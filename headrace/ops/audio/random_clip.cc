// SPDX-License-Identifier: Apache-2.0
// RandomClip: a number of frames from a random position.
#include "headrace/base/registry.h"
#include "headrace/ops/audio/audio_op.h"

namespace headrace {
namespace {

class RandomClip final : public ClipOp {
 public:
  using ClipOp::ClipOp;

 private:
  int64_t begin_of(int64_t frames, Draws draws) const override {
    const int64_t places = std::max<int64_t>(frames - clip_frames(), 0) + 1;
    return std::min(static_cast<int64_t>(draws.uniform() * static_cast<double>(places)),
                    places - 1);
  }
};

const OpRecord kRandomClip{
    .name = "RandomClip",
    .doc =
        "Keeps a random segment of an audio clip.\n\n"
        "Audio, (channels, frames), becomes (channels, num_frames). Every position is equally "
        "likely; all audio fields of a record are cropped at the same fraction of their length. "
        "Only what is kept is decoded. An audio clip that is shorter is a data error unless "
        "pad_if_needed.",
    .page = {.unseen = "it works on audio: [audio](audio.md)"},
    .params = {num_frames_param(),
               pad_if_needed_param(
                   "Whether an audio clip that is too short is padded with silence at its end.")},
    .oracle = "the slice of the whole audio clip, bit for bit where the codec is lossless",
    .example = {{"num_frames", int64_t{16000}}, {"pad_if_needed", true}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<RandomClip>("RandomClip", arguments.integer("num_frames"),
                                          arguments.flag("pad_if_needed"));
    }};
const Register<OpRecord> registered_random_clip(kRandomClip);

}  // namespace
}  // namespace headrace
