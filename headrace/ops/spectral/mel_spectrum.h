// SPDX-License-Identifier: Apache-2.0
// Mel spectra of a waveform, computed block by block.
#pragma once

#include <algorithm>
#include <vector>

#include "headrace/ops/spectral/spectral_params.h"

namespace headrace {

struct MelSpectrum {
  Spectra spectra;
  SparseRows filters;

  // (channels, samples) to (channels, filters, frames).
  Shape shape_after(const Shape& shape) const {
    return {shape[0], filters.size(), frames_after(spectra.frames, shape[1])};
  }
  // REQUIRES: room for `first` to `first + frames` frames of each filter, with rows `stride` apart.
  void compute(const float* in, int64_t samples, int64_t frames, float* out, int64_t stride) const {
    const FrameKernels& kernels = frame_kernels();
    SpectralScratch scratch;
    Buffer roots;
    scratch.each_block(spectra.frames, in, samples, frames, [&](const SpectralBlock& block) {
      const float* values = block.powers;
      if (spectra.magnitude) {
        const int64_t count = int64_t{spectra.frames.fft.bins()} * block.lanes;
        roots.resize(static_cast<size_t>(count) * sizeof(float));
        kernels.roots(values, count, reinterpret_cast<float*>(roots.data()));
        values = reinterpret_cast<const float*>(roots.data());
      }
      kernels.weigh(filters, values, block.lanes, block.frames, out + block.first, stride);
    });
  }
};

inline MelSpectrum mel_spectrum_from(std::string_view owner, const Arguments& arguments,
                                     std::string_view norm = "norm") {
  Spectra spectra = spectra_from(owner, arguments);
  const int bins = spectra.frames.fft.bins();
  return {std::move(spectra), mel_filters_from(owner, arguments, bins, norm)};
}

// In torchaudio's order.
inline std::vector<Param> mel_spectrum_params() {
  std::vector<Param> all = frame_params(), mel = mel_params();
  all.push_back(mel[1]);  // f_min
  all.push_back(mel[2]);  // f_max
  all.push_back(pad_param());
  all.push_back(mel[0]);  // n_mels
  std::ranges::move(window_params(), std::back_inserter(all));
  all.push_back(mel[3]);  // norm
  all.push_back(mel[4]);  // mel_scale
  return all;
}

}  // namespace headrace
