// SPDX-License-Identifier: Apache-2.0
// MelSpectrogram: a waveform's spectra, summed by mel filters.
#include "headrace/base/registry.h"
#include "headrace/ops/spectral/mel_spectrum.h"
#include "headrace/ops/spectral/spectral_op.h"

namespace headrace {
namespace {

class MelSpectrogram final : public SpectralOp {
 public:
  explicit MelSpectrogram(const Arguments& arguments)
      : SpectralOp("MelSpectrogram", Takes::kWaveform,
                   static_cast<int>(arguments.integer("sample_rate"))),
        mel_(mel_spectrum_from("MelSpectrogram", arguments)) {}

 private:
  Shape shape_after(const Shape& shape) const override { return mel_.shape_after(shape); }
  std::string misfit(const Shape& shape) const override {
    return why_not_mirrored(mel_.spectra, shape[1]);
  }
  void compute(const At&, const float* in, const Shape& shape, float* out) const override {
    const Shape after = shape_after(shape);
    for (int64_t c = 0; c < after[0]; ++c) {
      mel_.compute(in + c * shape[1], shape[1], after[2], out + c * after[1] * after[2], after[2]);
    }
  }

  const MelSpectrum mel_;
};

std::vector<Param> params_of_mel_spectrogram() {
  std::vector<Param> all = mel_spectrum_params();
  all.insert(all.begin(), sample_rate_param());
  return all;
}

const OpRecord kMelSpectrogram{
    .name = "MelSpectrogram",
    .doc =
        "The mel spectrogram of a waveform: Spectrogram and MelScale in one pass.\n\n"
        "A waveform, float32 (channels, frames), becomes (channels, n_mels, 1 + frames // "
        "hop_length), or, with center=False, as many frames as fit. A waveform too short for "
        "its mirrored padding is a data error (HR0545). Filters narrower than a bin are all "
        "zeros, about which torchaudio warns: 4 of 128 at the defaults.",
    .page = {.unseen = "it works on audio: [audio features](audio-features.md)"},
    .params = params_of_mel_spectrogram(),
    .oracle =
        "torchaudio.transforms.MelSpectrogram, or librosa.feature.melspectrogram where norm and "
        "mel_scale are Slaney's, within 1e-6 of a frame's largest value and 1e-5 of each value",
    .example = {{"n_fft", int64_t{64}},
                {"win_length", int64_t{50}},
                {"hop_length", int64_t{20}},
                {"f_min", 50.0},
                {"f_max", 7000.0},
                {"pad", int64_t{2}},
                {"n_mels", int64_t{8}},
                {"normalized", true},
                {"norm", std::string("slaney")}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<MelSpectrogram>(arguments);
    }};
const Register<OpRecord> registered_mel_spectrogram(kMelSpectrogram);

}  // namespace
}  // namespace headrace
