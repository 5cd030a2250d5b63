// SPDX-License-Identifier: Apache-2.0
// AddNoise: a second waveform is added to the first, so loud that their ratio is the one drawn.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/ops/audio/audio_op.h"
#include "headrace/ops/picture_op.h"
#include "headrace/ops/spectral/sound_op.h"

namespace headrace {
namespace {

double energy_of(const float* samples, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += double(samples[i]) * double(samples[i]);
  return sum;
}

class AddNoise final : public Op {
 public:
  AddNoise(double least, double most) : least_(least), most_(most) {}
  // Which is which only fields= can say.
  bool takes(FieldKind) const override { return false; }
  int operands() const override { return 2; }
  bool measures() const override { return true; }
  bool foresee(Foreseen&, Draws) const override { return true; }

  void plan(FieldState& field) const override {
    const bool kind = field.kind == FieldKind::kAudio || field.kind == FieldKind::kTensor;
    if (kind && field.dtype == DType::kFloat32 && field.shape.size() == 2) return;
    raise_misfit("AddNoise",
                 "adds float32 waveforms, (channels, frames), and \"" + field.name + "\" is " +
                     text_of(field),
                 "fields=[\"sound\", \"noise\"]");
  }

  Result<void> apply(OpContext& context) const override {
    FieldValue& sound = context.record.fields[static_cast<size_t>(context.fields[0])];
    FieldValue& noise = context.record.fields[static_cast<size_t>(context.fields[1])];
    const double ratio = context.draws.uniform(least_, most_), place = context.draws.uniform();
    Result<Waveform> mixed = samples_of(sound, context.renderer);
    if (!mixed) return std::move(mixed.error());
    if (Result<void> made = make_samples(noise, context.renderer); !made) return made;
    if (const std::string reason = misfit(sound, noise); !reason.empty()) {
      return cannot_take("AddNoise", reason);
    }
    const SamplesIn noises(noise);
    const int64_t frames = mixed->frames, there = noise.shape[1];
    // Any of the places at which a long one fits; a short one begins anew from anywhere.
    const int64_t places = there >= frames ? there - frames + 1 : there;
    const auto first = std::min(static_cast<int64_t>(place * double(places)), places - 1);
    std::vector<float> cut(static_cast<size_t>(frames));
    for (int64_t c = 0; frames > 0 && c < mixed->channels; ++c) {
      const float* const from = noises.floats() + (noise.shape[0] == 1 ? 0 : c * there);
      for (int64_t i = 0; i < frames;) {
        const int64_t at = (first + i) % there, run = std::min(there - at, frames - i);
        std::copy_n(from + at, run, cut.begin() + i);
        i += run;
      }
      add(cut, ratio, mixed->channel(c).data());
    }
    return {};
  }

 private:
  static std::string misfit(const FieldValue& sound, const FieldValue& noise) {
    if (noise.shape[1] == 0) return "is to have noise, and that has no frames";
    if (noise.shape[0] != 1 && noise.shape[0] != sound.shape[0]) {
      return "is " + text_of(DType::kFloat32, sound.shape) + ", and its noise " +
             text_of(DType::kFloat32, noise.shape) + ": of one channel, or of as many";
    }
    if (sound.sample_rate && noise.sample_rate && sound.sample_rate != noise.sample_rate) {
      return "has " + std::to_string(sound.sample_rate) + " Hz, and its noise " +
             std::to_string(noise.sample_rate) + ": Resample brings both to one";
    }
    return {};
  }

  static void add(const std::vector<float>& noise, double ratio, float* sound) {
    const auto count = static_cast<int64_t>(noise.size());
    const double of_noise = energy_of(noise.data(), count);
    if (of_noise == 0) return;
    const double tenth = portable_exp(-ratio / 10 * portable_log(10));
    const auto scale = static_cast<float>(std::sqrt(energy_of(sound, count) / of_noise * tenth));
    for (int64_t i = 0; i < count; ++i) sound[i] += scale * noise[size_t(i)];
  }

  const double least_, most_;
};

const OpRecord kAddNoise{
    .name = "AddNoise",
    .doc =
        "Adds a record's second waveform to its first, at a signal-to-noise ratio.\n\n"
        "fields= names both, the sound and then the noise: audio, (channels, frames), the noise "
        "of one channel or of as many. The sound keeps its shape; the noise stays. Of a longer "
        "noise a stretch is taken at a place that is drawn, a shorter one is repeated from such a "
        "place on; silent noise adds nothing. Each channel gets the ratio.",
    .params = {{.name = "snr",
                .type = ParamType::kFloats,
                .doc = "Energy of the sound over that of the noise, in dB; or (least, most).",
                .required = true,
                .minimum = -200,
                .maximum = 200,
                .min_count = 1,
                .max_count = 2}},
    .oracle =
        "torchaudio.transforms.AddNoise of the same stretch and ratio, within 1e-6 of the "
        "largest; both in distribution",
    .example = {{"snr", std::vector<double>{3, 15}}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      const std::vector<double>& snr = arguments.numbers("snr");
      if (snr.front() > snr.back()) raise_misfit("AddNoise", "snr must be (least, most)");
      return std::make_unique<AddNoise>(snr.front(), snr.back());
    }};
const Register<OpRecord> registered_add_noise(kAddNoise);

}  // namespace
}  // namespace headrace
