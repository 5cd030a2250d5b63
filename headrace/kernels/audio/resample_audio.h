// SPDX-License-Identifier: Apache-2.0
// Resamples to another sample rate, by torchaudio's windowed sinc (transforms.Resample): each
// output sample is a weighted sum of the input samples around it, and weights repeat with a period
// equal to the reduced new rate. torchaudio's filter is mostly zeros, one row per phase; only
// nonzero weights are stored.
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
  bool kaiser = false;  // else a Hann window
  double beta = 14.769656459379492;
};

class AudioResampler {
 public:
  // Number of filter weights; known before the filter is built.
  static int64_t weight_count(const ResampleSettings& settings);

  explicit AudioResampler(const ResampleSettings& settings);

  // ceil(length * new / orig).
  int64_t length_after(int64_t length) const;
  // REQUIRES: room for length_after(length) at `out`.
  void resample(const float* in, int64_t length, float* out) const;

  // The input frames [begin, end) that outputs [first, first + count) of a longer signal depend on.
  // Resampling them alone gives these outputs bit for bit, after `skipped` others. `end` may be
  // past the end of the signal.
  struct Stretch {
    int64_t begin, end, skipped;
  };
  Stretch stretch_for(int64_t first, int64_t count) const;

 private:
  int64_t orig_, new_;  // divided by their common divisor, times `repeats_`
  int64_t repeats_;
  int64_t width_;  // input samples before an output's position that the filter covers
  int64_t span_;   // input samples needed for a run of new_ outputs
  SparseRows phases_;
};

}  // namespace headrace
