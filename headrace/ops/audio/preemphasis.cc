// SPDX-License-Identifier: Apache-2.0
// Preemphasis: subtracts a fraction of the previous sample.
#include "headrace/base/registry.h"
#include "headrace/ops/audio/audio_op.h"

namespace headrace {
namespace {

class Preemphasis final : public WaveformOp {
 public:
  explicit Preemphasis(float coefficient) : WaveformOp("Preemphasis"), coefficient_(coefficient) {}

 private:
  Result<void> change(const Waveform& waveform, Draws) const override {
    for (int64_t c = 0; c < waveform.channels; ++c) {
      float* const x = waveform.channel(c).data();
      for (int64_t i = waveform.frames; i-- > 1;) x[i] -= coefficient_ * x[i - 1];
    }
    return {};
  }

  const float coefficient_;
};

const OpRecord kPreemphasis{
    .name = "Preemphasis",
    .doc =
        "Emphasizes high frequencies: y[i] = x[i] - coeff * x[i-1].\n\n"
        "Audio, (channels, frames), float32, keeps its shape; the first frame is unchanged.",
    .page = {.unseen = "it works on audio: [audio](audio.md)"},
    .params = {{.name = "coeff",
                .type = ParamType::kFloat,
                .doc = "Usually between 0 and 1.",
                .fallback = 0.97}},
    .oracle = "torchaudio.transforms.Preemphasis, bit for bit",
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<Preemphasis>(static_cast<float>(arguments.number("coeff")));
    }};
const Register<OpRecord> registered_preemphasis(kPreemphasis);

}  // namespace
}  // namespace headrace
