// SPDX-License-Identifier: Apache-2.0
// Another sample rate, by torchaudio's windowed sinc (transforms.Resample): each output sample is a
// sum over the input samples around it, whose weights repeat after as many outputs as the reduced
// rate has. torchaudio's filter is mostly zeros, one row a phase; only what is not zero is kept.
//
// Immutable; any thread may use it.
#pragma once

#include <cstdint>

#include "headrace/kernels/audio/sparse_rows.h"

namespace headrace {

struct ResampleSettings {
  int64_t orig_freq = 16000, new_freq = 16000;
  int lowpass_filter_width = 6;
  double rolloff = 0.99;
  bool kaiser = false;  // else Hann's window
  double beta = 14.769656459379492;
};

class AudioResampler {
 public:
  // The weights that the filter has, to be known before it is made.
  static int64_t weights_of(const ResampleSettings& settings);

  explicit AudioResampler(const ResampleSettings& settings);

  // ceil(length * new / orig).
  int64_t length_after(int64_t length) const;
  // REQUIRES: room for length_after(length) at `out`.
  void resample(const float* in, int64_t length, float* out) const;

  // The frames [begin, end) that outputs [first, first + count) of a longer signal are made from:
  // resampled alone, these are the outputs from `skipped` on, to the last bit. `end` may lie behind
  // the signal.
  struct Stretch {
    int64_t begin, end, skipped;
  };
  Stretch stretch_for(int64_t first, int64_t count) const;

 private:
  int64_t orig_, new_;  // without their common divisor, times `repeats_`
  int64_t repeats_;
  int64_t width_;  // samples before the first one that the filter sees
  int64_t span_;   // input samples that a run of new_ outputs is made from
  SparseRows phases_;
};

}  // namespace headrace
