// SPDX-License-Identifier: Apache-2.0
// Spectrogram: the spectra of a waveform's frames.
#include "headrace/base/registry.h"
#include "headrace/ops/spectral/spectral_op.h"
#include "headrace/ops/spectral/spectral_params.h"

namespace headrace {
namespace {

class Spectrogram final : public SpectralOp {
 public:
  explicit Spectrogram(const Arguments& arguments)
      : SpectralOp("Spectrogram", Takes::kWaveform),
        spectra_(spectra_from("Spectrogram", arguments)) {}

 private:
  Shape shape_after(const Shape& shape) const override {
    return {shape[0], spectra_.frames.fft.bins(), frames_after(spectra_.frames, shape[1])};
  }
  std::string misfit(const Shape& shape) const override {
    return why_not_mirrored(spectra_, shape[1]);
  }
  void compute(const At&, const float* in, const Shape& shape, float* out) const override {
    const int64_t samples = shape[1], frames = spectra_.frames.frames_of(samples);
    const int bins = spectra_.frames.fft.bins();
    SpectralScratch scratch;
    for (int64_t c = 0; c < shape[0]; ++c) {
      float* const to = out + c * bins * frames;
      scratch.each_block(spectra_.frames, in + c * samples, samples, frames,
                         [&](const SpectralBlock& block) {
                           for (int k = 0; k < bins; ++k) {
                             std::copy_n(block.powers + int64_t{k} * block.lanes, block.frames,
                                         to + k * frames + block.first);
                           }
                         });
    }
    if (spectra_.magnitude) {
      frame_kernels().roots(out, shape[0] * bins * frames, out);
    }
  }

  const Spectra spectra_;
};

std::vector<Param> params() {
  std::vector<Param> all = frame_params();
  all.push_back(pad_param());
  std::ranges::move(window_params(), std::back_inserter(all));
  return all;
}

const OpRecord kSpectrogram{
    .name = "Spectrogram",
    .doc =
        "The spectrogram of a waveform: powers or magnitudes of the spectra of its frames.\n\n"
        "A waveform, float32 (channels, frames), becomes (channels, n_fft // 2 + 1, 1 + frames "
        "// hop_length), or, with center=False, as many frames as fit. A waveform too short for "
        "its mirrored padding is a data error (HR0545).",
    .page = {.unseen = "it works on audio: [audio features](audio-features.md)"},
    .params = params(),
    .oracle =
        "torchaudio.transforms.Spectrogram, within 1e-6 of a frame's largest value and 1e-5 of "
        "each value",
    .example = {{"n_fft", int64_t{16}},
                {"win_length", int64_t{12}},
                {"hop_length", int64_t{5}},
                {"pad", int64_t{2}},
                {"normalized", true}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<Spectrogram>(arguments);
    }};
const Register<OpRecord> registered_spectrogram(kSpectrogram);

}  // namespace
}  // namespace headrace
