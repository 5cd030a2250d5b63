// SPDX-License-Identifier: Apache-2.0
// Mono: one channel, the mean of all.
#include "headrace/base/registry.h"
#include "headrace/ops/audio/audio_op.h"

namespace headrace {
namespace {

class Mono final : public AudioOp {
 public:
  Mono() : AudioOp("Mono") {}
  bool measures() const override { return true; }
  Rate rate() const override { return Rate::kAny; }

 private:
  void plan_audio(FieldState& audio) const override { audio.shape[0] = 1; }
  bool predict_audio(Predicted& value, Draws) const override {
    value.shape[0] = 1;
    return true;
  }

  Result<void> apply_to(FieldValue& audio, Draws, Renderer& renderer) const override {
    if (channels_of(audio) == 1) return {};
    if (Result<void> made = make_samples(audio, renderer); !made) return made;
    const auto channels = static_cast<size_t>(channels_of(audio));
    const auto frames = static_cast<size_t>(frames_of(audio));
    const auto* const from = reinterpret_cast<const float*>(audio.bytes.data());
    Buffer out(frames * sizeof(float));
    auto* const to = reinterpret_cast<float*>(out.data());
    for (size_t i = 0; i < frames; ++i) {
      float sum = from[i];
      for (size_t c = 1; c < channels; ++c) sum += from[c * frames + i];
      to[i] = sum / static_cast<float>(channels);
    }
    audio.shape = {1, static_cast<int64_t>(frames)};
    audio.own(std::move(out));
    return {};
  }
};

const OpRecord kMono{
    .name = "Mono",
    .doc =
        "Mixes the channels of an audio clip into one by averaging them.\n\n"
        "Audio, (channels, frames), becomes (1, frames). Afterwards all clips have "
        "one channel.",
    .page = {.unseen = "it works on audio: [audio](audio.md)"},
    .params = {},
    .oracle =
        "torch's waveform.mean(0, keepdim=True), bit for bit up to 4 channels, else within "
        "1e-6",
    .make = [](const Arguments&) -> std::unique_ptr<Op> { return std::make_unique<Mono>(); }};
const Register<OpRecord> registered_mono(kMono);

}  // namespace
}  // namespace headrace
