// SPDX-License-Identifier: Apache-2.0
// CenterClip: a number of frames from the middle of the audio.
#include "headrace/base/registry.h"
#include "headrace/ops/audio/audio_op.h"

namespace headrace {
namespace {

class CenterClip final : public ClipOp {
 public:
  using ClipOp::ClipOp;

 private:
  // A clip longer than the audio begins before it: the silence before is as long as the silence
  // after, or one frame shorter.
  int64_t begin_of(int64_t frames, Draws) const override {
    const int64_t over = frames - clip_frames();
    return over >= 0 ? over / 2 : -(-over / 2);
  }
};

const OpRecord kCenterClip{
    .name = "CenterClip",
    .doc =
        "Keeps the middle of an audio clip.\n\n"
        "Audio, (channels, frames), becomes (channels, num_frames), starting at frame "
        "(frames - num_frames) // 2. Only this part is decoded. A shorter audio clip is a data "
        "error unless pad_if_needed=True.",
    .page = {.unseen = "it works on audio: [audio](audio.md)"},
    .params = {num_frames_param(),
               pad_if_needed_param(
                   "Whether silence is added on both sides of an audio clip that is too "
                   "short; if odd, one more frame after it.")},
    .oracle = "the slice of the whole audio clip, bit for bit where the codec is lossless",
    .example = {{"num_frames", int64_t{16000}}, {"pad_if_needed", true}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<CenterClip>("CenterClip", arguments.integer("num_frames"),
                                          arguments.flag("pad_if_needed"));
    }};
const Register<OpRecord> registered_center_clip(kCenterClip);

}  // namespace
}  // namespace headrace
