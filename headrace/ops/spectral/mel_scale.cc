// SPDX-License-Identifier: Apache-2.0
// MelScale: the bins of a spectrogram, summed by mel filters.
#include "headrace/base/registry.h"
#include "headrace/ops/spectral/spectral_op.h"
#include "headrace/ops/spectral/spectral_params.h"

namespace headrace {
namespace {

class MelScale final : public SpectralOp {
 public:
  explicit MelScale(const Arguments& arguments)
      : SpectralOp("MelScale", Takes::kSpectrogram),
        bins_(arguments.integer("n_stft")),
        filters_(mel_filters_from("MelScale", arguments, static_cast<int>(bins_))) {}

 private:
  Shape shape_after(const Shape& shape) const override {
    return {shape[0], filters_.size(), shape[2]};
  }
  std::string misfit(const Shape& shape) const override {
    if (shape[1] < 0 || shape[1] == bins_) return {};
    return "has " + std::to_string(shape[1]) + " bins, but n_stft is " + std::to_string(bins_) +
           ": n_fft // 2 + 1 of the spectrogram";
  }
  void compute(const At&, const float* in, const Shape& shape, float* out) const override {
    const int64_t frames = shape[2];
    for (int64_t c = 0; c < shape[0]; ++c) {
      const float* const from = in + c * bins_ * frames;
      // The last row's vectors must not reach past the value.
      const int lanes = frame_kernels().lanes;
      const auto whole = static_cast<int>(frames / lanes * lanes);
      float* const to = out + c * filters_.size() * frames;
      frame_kernels().weigh(filters_, from, frames, whole, to, frames);
      if (whole == frames) continue;
      Buffer rest(static_cast<size_t>(bins_ * lanes) * sizeof(float));
      auto* const columns = reinterpret_cast<float*>(rest.data());
      for (int64_t k = 0; k < bins_; ++k) {
        std::copy(from + k * frames + whole, from + (k + 1) * frames, columns + k * lanes);
      }
      frame_kernels().weigh(filters_, columns, lanes, static_cast<int>(frames - whole), to + whole,
                            frames);
    }
  }

  const int64_t bins_;
  const SparseRows filters_;
};

std::vector<Param> params_of_mel_scale() {
  std::vector<Param> all = mel_params();
  all.insert(all.begin() + 1, sample_rate_param());
  all.insert(all.begin() + 4, {.name = "n_stft",
                               .type = ParamType::kInt,
                               .doc = "Bins of the spectrogram: n_fft // 2 + 1.",
                               .fallback = int64_t{201},
                               .minimum = 1,
                               .maximum = RealFft::kMaxSamples});
  return all;
}

const OpRecord kMelScale{
    .name = "MelScale",
    .doc =
        "Sums the bins of a spectrogram with triangular filters that are evenly spaced on the "
        "mel scale.\n\n"
        "A spectrogram, float32 (channels, n_stft, frames), becomes (channels, n_mels, frames). "
        "Filters narrower than a bin are all zeros, about which torchaudio warns: use fewer "
        "filters or a larger n_fft. After Spectrogram it gives the same bytes as "
        "MelSpectrogram, which is faster.",
    .page = {.unseen = "it works on audio: [audio features](audio-features.md)"},
    .params = params_of_mel_scale(),
    .oracle =
        "torchaudio.transforms.MelScale, or librosa.filters.mel where norm and mel_scale are "
        "Slaney's, within 1e-5 of each value",
    .example = {{"n_mels", int64_t{5}},
                {"n_stft", int64_t{9}},
                {"f_min", 50.0},
                {"f_max", 7000.0},
                {"norm", std::string("slaney")}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<MelScale>(arguments);
    }};
const Register<OpRecord> registered_mel_scale(kMelScale);

}  // namespace
}  // namespace headrace
