// SPDX-License-Identifier: Apache-2.0
// WhisperLogMel: the input of Whisper's encoder.
#include "headrace/base/registry.h"
#include "headrace/kernels/audio/mel_filters.h"
#include "headrace/kernels/audio/window.h"
#include "headrace/ops/spectral/mel_spectrum.h"
#include "headrace/ops/spectral/spectral_op.h"

namespace headrace {
namespace {

constexpr int kSamples = 400, kHop = 160, kRate = 16000;

class WhisperLogMel final : public SpectralOp {
 public:
  WhisperLogMel(int filters, int64_t samples, bool truncates)
      : SpectralOp("WhisperLogMel", Takes::kWaveform, kRate),
        samples_(samples),
        truncates_(truncates),
        mel_{.spectra = {.frames = {.fft = RealFft(kSamples),
                                    .window = window_of(WindowShape::kHann, kSamples, true),
                                    .hop = kHop,
                                    .before = kSamples / 2,
                                    .edge = SignalEdge::kReflect},
                         .reflects = true},
             .filters = exact_mel_filters({.count = filters,
                                           .bins = kSamples / 2 + 1,
                                           .sample_rate = kRate,
                                           .lowest = 0,
                                           .highest = kRate / 2,
                                           .slaney_scale = true,
                                           .slaney_norm = true})} {}

 private:
  // The audio's length after padding or truncating.
  int64_t samples_after(int64_t samples) const { return samples_ > 0 ? samples_ : samples; }

  Shape shape_after(const Shape& shape) const override {
    const int64_t samples = samples_after(shape[1]);
    return {mel_.filters.size(), samples < 0 ? -1 : samples / kHop};  // the last frame is dropped
  }
  std::string misfit(const Shape& shape) const override {
    if (shape[0] >= 0 && shape[0] != 1) {
      return "has " + std::to_string(shape[0]) + " channels, but Whisper takes one";
    }
    if (samples_ > 0 && shape[1] > samples_ && !truncates_) {
      return "has " + std::to_string(shape[1]) + " frames, which is more than the " +
             std::to_string(samples_) + " of chunk_length: truncation=True truncates it";
    }
    return shape[1] < 0 ? "" : why_not_mirrored(mel_.spectra, samples_after(shape[1]));
  }
  void compute(const At& at, const float* in, const Shape& shape, float* out) const override {
    const int64_t samples = samples_after(shape[1]);
    const int64_t frames = samples / kHop, count = mel_.filters.size() * frames;
    std::shared_ptr<Buffer> padded;
    if (shape[1] < samples) {
      padded = at.memory->of(static_cast<size_t>(samples) * sizeof(float));
      auto* const to = reinterpret_cast<float*>(padded->data());
      std::fill(std::copy_n(in, shape[1], to), to + samples, 0.0f);
      in = to;
    }
    mel_.compute(in, samples, frames, out, frames);
    const FrameKernels& kernels = frame_kernels();
    kernels.decibels(out, count, {.multiplier = 1, .least = 1e-10f}, out);
    kernels.raise(out, count, kernels.largest(out, count) - 8, 4, 0.25f, out);
  }

  const int64_t samples_;  // 0: the audio's own length
  const bool truncates_;
  const MelSpectrum mel_;
};

const OpRecord kWhisperLogMel{
    .name = "WhisperLogMel",
    .doc =
        "Whisper's log-mel spectrogram of a 16 kHz waveform.\n\n"
        "A waveform, float32 (1, frames), is padded with silence to chunk_length seconds and "
        "becomes (n_mels, frames // 160): (80, 3000) for 30 seconds. Windows have 400 samples; mel "
        "scale and norm are Slaney's; values are log10 of at least 1e-10, at most 8 below the "
        "largest, then (x + 4) / 4; the last frame is dropped. A longer clip is a data error "
        "(HR0545) unless truncation=True, which is what transformers always does.",
    .page = {.unseen = "it works on audio: [audio features](audio-features.md)"},
    .params = {{.name = "n_mels",
                .type = ParamType::kInt,
                .doc = "Number of mel filters: 80, or 128 since large-v3.",
                .fallback = int64_t{80},
                .minimum = 1,
                .maximum = 512},
               {.name = "chunk_length",
                .type = ParamType::kFloat,
                .doc = "Length in seconds to which audio clips are padded; None: no padding.",
                .fallback = 30.0,
                .minimum = 0.0125,
                .maximum = 36000,
                .or_none = true},
               {.name = "truncation",
                .type = ParamType::kBool,
                .doc = "Whether longer audio is truncated to chunk_length.",
                .fallback = false}},
    .oracle = "transformers' WhisperFeatureExtractor, within 1e-4",
    .example = {{"chunk_length", 0.5}, {"truncation", true}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      const bool whole = arguments.is_none("chunk_length");
      const double seconds = whole ? 0 : arguments.number("chunk_length");
      return std::make_unique<WhisperLogMel>(static_cast<int>(arguments.integer("n_mels")),
                                             static_cast<int64_t>(seconds * kRate),
                                             arguments.flag("truncation"));
    }};
const Register<OpRecord> registered_whisper_log_mel(kWhisperLogMel);

}  // namespace
}  // namespace headrace
