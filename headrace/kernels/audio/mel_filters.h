// SPDX-License-Identifier: Apache-2.0
// Triangular filters over the bins of a spectrum, evenly spaced on the mel scale, computed as in
// each of several training libraries, including its rounding.
#pragma once

#include "headrace/kernels/audio/sparse_rows.h"

namespace headrace {

struct MelFilters {
  int count = 128, bins = 201;  // number of filters, and of bins of the spectrum
  double sample_rate = 16000, lowest = 0, highest = 8000;  // Hz
  bool slaney_scale = false;  // linear up to 1 kHz; else HTK's 2595 log10(1 + f / 700)
  bool slaney_norm = false;   // each divided by half its width in Hz
  bool linear = false;        // spaced evenly in Hz: torchaudio.functional.linear_fbanks
};

// torchaudio.functional.melscale_fbanks, in float32 starting with the mel points. REQUIRES: lowest
// < highest, and a whole sample rate.
SparseRows torchaudio_mel_filters(const MelFilters& how);
// The same computed in float64 and rounded once at the end: librosa.filters.mel and transformers'
// mel_filter_bank.
SparseRows exact_mel_filters(const MelFilters& how);
// torchaudio.compliance.kaldi.get_mel_banks, in float32: triangles on the mel scale itself, 1127
// ln(1 + f / 700), for a transform of `samples` samples; the last bin is not used.
SparseRows kaldi_mel_filters(int count, int samples, double sample_rate, double lowest,
                             double highest);

// Rows of torchaudio's DCT-II: `count` coefficients of `columns` values. `ortho`: orthonormal.
SparseRows dct_rows(int count, int columns, bool ortho);

}  // namespace headrace
