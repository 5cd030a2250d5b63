// SPDX-License-Identifier: Apache-2.0
// PadOrTrim: the beginning of the audio, padded with silence if it is shorter.
#include "headrace/base/registry.h"
#include "headrace/ops/audio/audio_op.h"

namespace headrace {
namespace {

class PadOrTrim final : public ClipOp {
 public:
  explicit PadOrTrim(int64_t frames) : ClipOp("PadOrTrim", frames, true) {}

 private:
  int64_t begin_of(int64_t, Draws) const override { return 0; }
};

const OpRecord kPadOrTrim{
    .name = "PadOrTrim",
    .doc =
        "Trims an audio clip to a length, or pads it with silence at its end.\n\n"
        "Audio, (channels, frames), becomes (channels, num_frames). What is trimmed is not "
        "decoded. Whisper models take 30 seconds.",
    .page = {.unseen = "it works on audio: [audio](audio.md)"},
    .params = {num_frames_param()},
    .oracle = "whisper.audio.pad_or_trim, bit for bit",
    .example = {{"num_frames", int64_t{16000}}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<PadOrTrim>(arguments.integer("num_frames"));
    }};
const Register<OpRecord> registered_pad_or_trim(kPadOrTrim);

}  // namespace
}  // namespace headrace
