// SPDX-License-Identifier: Apache-2.0
// The scalar reference of resample_avx2.cc and resample_avx512.cc, and the SIMD level of other
// architectures.
#include <algorithm>

#include "headrace/kernels/resample/resample_levels.h"

namespace headrace {
namespace {

uint8_t clip8(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> 22, 0, 255)); }

void weigh(const WeighJob& job) {
  for (int i = 0; i < job.padded; ++i) {
    double sum = 0;
    for (int t = 0; t < job.count[i]; ++t) {
      const double x = t + job.first[i] - job.centers[i] + 0.5;
      job.scratch[t] = filter_weight(job.filter, x * job.inverse);
      sum += job.scratch[t];
    }
    for (int t = 0; t < job.taps; ++t) {
      double weight = t < job.count[i] ? job.scratch[t] : 0;
      if (sum != 0) weight /= sum;
      job.weights[size_t(t) * job.padded + i] =
          static_cast<int32_t>((weight < 0 ? -0.5 : 0.5) + weight * (1 << 22));
    }
  }
}

void tabulate(ResampleTables& tables) { tables.reach = ResampleTables::Reach::kAny; }

void horizontal(const ResampleTables& t, const uint8_t* const in[], int channels, uint8_t* out,
                ptrdiff_t plane) {
  for (int c = 0; c < channels; ++c) {
    for (int i = 0; i < t.outputs; ++i) {
      const uint8_t* const samples = in[c] + t.first[i];
      int32_t sum = 1 << 21;
      for (int tap = 0; tap < t.count[i]; ++tap) {
        sum += samples[tap] * t.weights[size_t(tap) * t.padded + i];
      }
      out[c * plane + i] = clip8(sum);
    }
  }
}

void vertical(const ResampleTables& t, int output, const uint8_t* const rows[], int bytes,
              uint8_t* out) {
  for (int x = 0; x < bytes; ++x) {
    int32_t sum = 1 << 21;
    for (int tap = 0; tap < t.count[output]; ++tap) {
      sum += rows[tap][x] * t.weights[size_t(tap) * t.padded + output];
    }
    out[x] = clip8(sum);
  }
}

constexpr ResampleKernels kKernels{weigh, tabulate, horizontal, vertical};

}  // namespace

const ResampleKernels* resample_kernels_scalar() { return &kKernels; }

}  // namespace headrace
