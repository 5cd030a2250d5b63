// SPDX-License-Identifier: Apache-2.0
// Parameters of torchaudio's spectral transforms, and values derived from them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/parameters.h"
#include "headrace/base/tensor.h"
#include "headrace/kernels/audio/frame_kernels.h"
#include "headrace/kernels/audio/mel_filters.h"
#include "headrace/kernels/audio/spectra.h"

namespace headrace {

// How frames are converted to spectra.
struct Spectra {
  SpectralFrames frames;
  bool magnitude = false;  // magnitudes instead of powers
  bool reflects = false;   // padding at the ends of the signal
};

// n_fft, win_length and hop_length; pad; window_fn, power, normalized, center and pad_mode.
Param n_fft_param(int64_t fallback = 400);
Param win_length_param();
Param hop_length_param();
std::vector<Param> frame_params();
Param pad_param();
std::vector<Param> window_params();
Spectra spectra_from(std::string_view owner, const Arguments& arguments);
// Why a signal of this length cannot be mirrored; "" if it can.
std::string why_not_mirrored(const Spectra& spectra, int64_t frames);

// The parameters n_mels, f_min, f_max, norm and mel_scale, and the filters that they make for
// spectra of `bins` bins: those of torchaudio, or of librosa if both scale and norm are Slaney's.
// `norm`: the name of the parameter norm.
std::vector<Param> mel_params();
SparseRows mel_filters_from(std::string_view owner, const Arguments& arguments, int bins,
                            std::string_view norm = "norm");

Param sample_rate_param();

// Unknown extents stay unknown.
inline int64_t frames_after(const SpectralFrames& frames, int64_t samples) {
  return samples < 0 ? -1 : frames.frames_of(samples);
}

// Converts to decibels with torchaudio's floor. `top`: the floor, relative to the overall maximum.
inline void to_decibels(const float* in, int64_t count, float multiplier, std::optional<float> top,
                        float* out) {
  const FrameKernels& kernels = frame_kernels();
  kernels.decibels(in, count, {.multiplier = multiplier, .least = 1e-10f}, out);
  if (top) kernels.raise(out, count, kernels.largest(out, count) - *top, 0, 1, out);
}

}  // namespace headrace
