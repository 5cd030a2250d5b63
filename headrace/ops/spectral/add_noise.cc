// SPDX-License-Identifier: Apache-2.0
// AddNoise: adds noise to audio, at a random signal-to-noise ratio. The noise is another field of
// the record, or comes from a dataset of noises.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/ops/audio/audio_op.h"
#include "headrace/ops/picture_op.h"
#include "headrace/ops/spectral/noise_source.h"
#include "headrace/ops/spectral/spectral_op.h"

namespace headrace {
namespace {

struct NoiseSettings {
  double least, most;  // signal-to-noise ratio, dB
  bool repeat, mono;
};

// A record's random values, in drawing order.
struct DrawnNoise {
  DrawnNoise(const NoiseSettings& settings, Draws& draws)
      : ratio(draws.uniform(settings.least, settings.most)), place(draws.uniform()) {}
  double ratio, place;
};

double energy_of(const float* samples, int64_t count) {
  constexpr int64_t kSums = 8;  // several accumulators, to break the dependency chain
  double sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (int64_t j = 0; j < kSums; ++j) sums[j] += double(samples[i + j]) * double(samples[i + j]);
  }
  for (; i < count; ++i) sums[0] += double(samples[i]) * double(samples[i]);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// The mean over channels, as in Mono.
void mix_channels(const float* from, int64_t channels, int64_t stride, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) {
    float sum = from[i];
    for (int64_t c = 1; c < channels; ++c) sum += from[c * stride + i];
    to[i] = sum / static_cast<float>(channels);
  }
}

// As many frames of a noise as the audio has, from one of its channels or their mean.
void cut_noise(const Noise& noise, int64_t channel, bool mono, std::vector<float>& to) {
  const auto frames = static_cast<int64_t>(to.size());
  for (int64_t i = 0; i < frames;) {
    const int64_t at = (noise.first + i) % noise.frames,
                  run = std::min(noise.frames - at, frames - i);
    if (mono) {
      mix_channels(noise.samples + at, noise.channels, noise.stride, run, to.data() + i);
    } else {
      std::copy_n(noise.samples + channel * noise.stride + at, run, to.begin() + i);
    }
    i += run;
  }
}

// False if there is no valid ratio: an energy is not finite.
bool add_to(float* audio, const std::vector<float>& noise, double ratio) {
  const auto count = static_cast<int64_t>(noise.size());
  const double noise_energy = energy_of(noise.data(), count),
               audio_energy = energy_of(audio, count);
  if (!std::isfinite(noise_energy) || !std::isfinite(audio_energy)) return false;
  if (noise_energy == 0) return true;
  const double tenth = portable_exp(-ratio / 10 * portable_log(10));
  const auto scale = static_cast<float>(std::sqrt(audio_energy / noise_energy * tenth));
  if (!std::isfinite(scale)) return true;  // near-zero noise would overflow float32
  for (int64_t i = 0; i < count; ++i) audio[i] += scale * noise[size_t(i)];
  return true;
}

Result<void> add_noise(const Waveform& audio, const Noise& noise, const NoiseSettings& how,
                       double ratio) {
  const bool mono = how.mono && noise.channels > 1;
  if (!mono && noise.channels != 1 && noise.channels != audio.channels) {
    return cannot_take(
        "AddNoise",
        "has " + std::to_string(audio.channels) + " channels, but its noise " +
            std::to_string(noise.channels) +
            ": the noise must have one channel or the same number; mono=True adds its mean to "
            "each");
  }
  std::vector<float> cut(static_cast<size_t>(audio.frames));
  for (int64_t c = 0; c < audio.channels; ++c) {
    const bool same = c > 0 && (mono || noise.channels == 1);
    if (!same) cut_noise(noise, noise.channels == 1 ? 0 : c, mono, cut);
    if (!add_to(audio.channel(c).data(), cut, ratio)) {
      return cannot_take("AddNoise",
                         "or its noise has samples that are not finite, so the ratio is undefined");
    }
  }
  return {};
}

void require_audio(const FieldState& field, std::string_view hint) {
  const bool kind = field.kind == FieldKind::kAudio || field.kind == FieldKind::kTensor;
  if (kind && field.dtype == DType::kFloat32 && field.shape.size() == 2) return;
  raise_invalid_argument(
      "AddNoise",
      "adds float32 waveforms, (channels, frames), but \"" + field.name + "\" is " + text_of(field),
      std::string(hint));
}

// For two fields of the record: adds the second to the first.
class AddNoiseFromField final : public Op {
 public:
  explicit AddNoiseFromField(const NoiseSettings& settings) : settings_(settings) {}
  // The two fields are only distinguished by fields=.
  bool takes(FieldKind) const override { return false; }
  int operands() const override { return 2; }
  bool measures() const override { return true; }
  bool predict(Predicted&, Draws) const override { return true; }

  void plan(FieldState& field) const override {
    require_audio(field, "fields=[\"audio\", \"noise\"], or source= of a dataset of noises");
  }

  Result<void> apply(OpContext& context) const override {
    FieldValue& audio = context.record.fields[static_cast<size_t>(context.fields[0])];
    FieldValue& noise = context.record.fields[static_cast<size_t>(context.fields[1])];
    const DrawnNoise drawn(settings_, context.draws);
    Result<Waveform> mixed = samples_of(audio, context.renderer);
    if (!mixed) return std::move(mixed.error());
    if (Result<void> made = make_samples(noise, context.renderer); !made) return made;
    if (const std::string reason = misfit(audio, noise); !reason.empty()) {
      return cannot_take("AddNoise", reason);
    }
    if (mixed->frames == 0) return {};
    const SamplesIn samples(noise);
    const int64_t there = noise.shape[1];
    return add_noise(*mixed,
                     {.samples = samples.floats(),
                      .channels = noise.shape[0],
                      .stride = there,
                      .frames = there,
                      .first = first_of_noise(drawn.place, there, mixed->frames)},
                     settings_, drawn.ratio);
  }

 private:
  std::string misfit(const FieldValue& audio, const FieldValue& noise) const {
    if (audio.sample_rate && noise.sample_rate && audio.sample_rate != noise.sample_rate) {
      return "has " + std::to_string(audio.sample_rate) + " Hz, but its noise " +
             std::to_string(noise.sample_rate) + ": use Resample to give both the same rate";
    }
    const int64_t frames = audio.shape[1], there = noise.shape[1];
    if (frames > 0 && there == 0) return "needs noise, but it has no frames";
    return there < frames && !settings_.repeat ? noise_too_short(frames, there) : "";
  }

  const NoiseSettings settings_;
};

// For a dataset of noises: adds one to each audio field of the record.
class AddNoiseFromSource final : public Op {
 public:
  AddNoiseFromSource(const NoiseSettings& settings, SourcePtr source)
      : settings_(settings), source_("AddNoise", std::move(source)) {}
  bool takes(FieldKind kind) const override { return kind == FieldKind::kAudio; }
  bool measures() const override { return true; }
  Rate rate() const override { return Rate::kAny; }
  bool predict(Predicted&, Draws) const override { return true; }

  void plan(FieldState& field) const override {
    require_audio(field, "put it before transforms whose result is not a waveform");
  }

  Result<void> apply(OpContext& context) const override {
    for (const int field : context.fields) {
      FieldValue& audio = context.record.fields[static_cast<size_t>(field)];
      Result<void> done =
          add_to_audio(audio, context.draws, context.record.attempt, context.renderer);
      if (!done) return done;
    }
    return {};
  }

 private:
  // A substitute draws its own noise; otherwise one bad noise would fail all substitutes.
  Result<void> add_to_audio(FieldValue& audio, Draws draws, int attempt, Renderer& renderer) const {
    const DrawnNoise drawn(settings_, draws);
    int64_t index = draws.below(source_.size());
    for (int i = 0; i < attempt; ++i) index = draws.below(source_.size());
    Result<Waveform> mixed = samples_of(audio, renderer);
    if (!mixed) return std::move(mixed.error());
    if (mixed->frames == 0) return {};
    const Result<Noise> noise = source_.take(index,
                                             {.sample_rate = audio.sample_rate,
                                              .frames = mixed->frames,
                                              .place = drawn.place,
                                              .repeat = settings_.repeat,
                                              .decoding = audio.audio.decoding},
                                             renderer);
    if (!noise) return noise.error();
    Result<void> added = add_noise(*mixed, *noise, settings_, drawn.ratio);
    if (!added) source_.blame(index, added.error());
    return added;
  }

  const NoiseSettings settings_;
  const NoiseSource source_;
};

const OpRecord kAddNoise{
    .name = "AddNoise",
    .doc =
        "Adds noise to an audio clip, at a given signal-to-noise ratio.\n\n"
        "The noise comes from a dataset of noises, source=, or from another field of the record: "
        "fields= then names the audio and its noise; the noise field is unchanged. Audio, "
        "(channels, frames), keeps its shape. A random segment of a longer noise is used; a "
        "shorter one is an error, or is repeated from a random position. Mono noise is added to "
        "every channel; noise with as many channels as the audio, channel by channel; silent noise "
        "adds nothing. The ratio holds for each channel.\n\n"
        "Each record's noise is drawn from source=, by seed, epoch and position. Only that segment "
        "of the noise file is decoded, and resampled to the audio clip's rate as with Resample.",
    .page = {.unseen = "it works on audio: [audio features](audio-features.md)"},
    .params = {{.name = "snr",
                .type = ParamType::kFloats,
                .doc =
                    "Signal-to-noise ratio: the energy of the audio relative to the noise, in dB. "
                    "One number, or (smallest, largest).",
                .required = true,
                .minimum = -200,
                .maximum = 200,
                .min_count = 1,
                .max_count = 2},
               {.name = "source",
                .type = ParamType::kSource,
                .doc =
                    "Dataset of noises (audio clips). None: the noise is a field of the record."},
               {.name = "repeat",
                .type = ParamType::kBool,
                .doc = "Whether a noise that is shorter than its audio is repeated.",
                .fallback = false},
               {.name = "mono",
                .type = ParamType::kBool,
                .doc = "Whether to mix the noise to mono before adding it to each channel.",
                .fallback = false}},
    .oracle =
        "torchaudio.transforms.AddNoise with the same segment and ratio, within 1e-6 of the "
        "largest value; segment and ratio in distribution",
    .example = {{"snr", std::vector<double>{3, 15}}, {"repeat", true}, {"mono", true}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      const std::vector<double>& snr = arguments.numbers("snr");
      if (snr.front() > snr.back())
        raise_invalid_argument("AddNoise", "snr must be (smallest, largest)");
      const NoiseSettings settings{snr.front(), snr.back(), arguments.flag("repeat"),
                                   arguments.flag("mono")};
      if (arguments.is_none("source")) return std::make_unique<AddNoiseFromField>(settings);
      return std::make_unique<AddNoiseFromSource>(settings,
                                                  source_from(arguments.object("source")));
    }};
const Register<OpRecord> registered_add_noise(kAddNoise);

}  // namespace
}  // namespace headrace
