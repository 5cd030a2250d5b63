// SPDX-License-Identifier: Apache-2.0
#ifndef HEADRACE_LEVEL

#include "headrace/kernels/resample/resample_wide.h"

#include <algorithm>

#include "headrace/kernels/resample/resample.h"

namespace headrace {
namespace {

// Samples that are summed in parallel.
constexpr int kWideLanes = 8;

// For each of `outputs`: its first sample, number of samples, and weights, `most` per output.
struct WideTaps {
  const int *first = nullptr, *count = nullptr;
  const double* weights = nullptr;
  int outputs = 0, most = 0;
};

}  // namespace
}  // namespace headrace

#define HEADRACE_NO_NEON
#define HEADRACE_KERNEL "headrace/kernels/resample/resample_wide.cc"
#include "headrace/kernels/each_level.h"

namespace headrace {
namespace {

// The normalized weights of all outputs of an axis.
struct Weights {
  std::vector<int> first, count;
  std::vector<double> of_tap;
  int most = 0;

  Weights(Filter filter, int input, int output) : first(size_t(output)), count(size_t(output)) {
    const FilterScale scale(filter, input, output);
    for (int i = 0; i < output; ++i) {
      const FilterSpan span = scale.span(i);
      first[size_t(i)] = span.first;
      count[size_t(i)] = span.count;
      most = std::max(most, span.count);
    }
    of_tap.resize(size_t(output) * size_t(most));
    for (int i = 0; i < output; ++i) {
      const FilterSpan span = scale.span(i);
      double* const weights = of_tap.data() + size_t(i) * size_t(most);
      double sum = 0;
      for (int t = 0; t < span.count; ++t) {
        const double x = t + span.first - span.center + 0.5;
        sum += weights[t] = filter_weight(filter, x * scale.inverse);
      }
      if (sum == 0) continue;
      for (int t = 0; t < span.count; ++t) weights[t] /= sum;
    }
  }
  WideTaps taps() const {
    return {first.data(), count.data(), of_tap.data(), static_cast<int>(first.size()), most};
  }
  const double* of_output(int i) const { return of_tap.data() + size_t(i) * size_t(most); }
};

// Eight rows in parallel; the last row is repeated below.
void horizontal(const WidePlane& in, Filter filter, WideSample sample, WidePlane& out) {
  const int to_width = out.width;
  const Weights weights(filter, in.width, to_width);
  std::vector<double> samples(size_t(in.width) * kWideLanes), sums(size_t(to_width) * kWideLanes);
  std::vector<float> rounded(sums.size());
  for (int y = 0; y < in.height; y += kWideLanes) {
    const int rows = std::min(kWideLanes, in.height - y);
    for (int r = 0; r < kWideLanes; ++r) {
      const float* const row = in.row(y + std::min(r, rows - 1));
      for (int x = 0; x < in.width; ++x) samples[size_t(x * kWideLanes + r)] = row[x];
    }
    HEADRACE_BY_LEVEL(across)(samples.data(), weights.taps(), sums.data());
    HEADRACE_BY_LEVEL(rounded)(sums.data(), static_cast<int>(sums.size()),
                               sample == WideSample::kUInt16, rounded.data());
    for (int r = 0; r < rows; ++r) {
      float* const row = out.row(y + r);
      for (int x = 0; x < to_width; ++x) row[x] = rounded[size_t(x * kWideLanes + r)];
    }
  }
}

void vertical(const WidePlane& in, Filter filter, WideSample sample, WidePlane& out) {
  const int to_height = out.height;
  const Weights weights(filter, in.height, to_height);
  const size_t padded = (size_t(in.width) + kWideLanes - 1) / kWideLanes * kWideLanes;
  std::vector<double> sums(padded);
  std::vector<float> rounded(padded);
  std::vector<const float*> rows(static_cast<size_t>(weights.most));
  for (int y = 0; y < to_height; ++y) {
    const int count = weights.count[size_t(y)];
    for (int t = 0; t < count; ++t) rows[size_t(t)] = in.row(weights.first[size_t(y)] + t);
    HEADRACE_BY_LEVEL(down)(rows.data(), weights.of_output(y), count, in.width, sums.data());
    HEADRACE_BY_LEVEL(rounded)(sums.data(), static_cast<int>(padded), sample == WideSample::kUInt16,
                               rounded.data());
    std::copy_n(rounded.data(), in.width, out.row(y));
  }
}

void nearest(const WidePlane& in, Filter filter, WidePlane& out) {
  const std::vector<int32_t> columns = nearest_samples(filter, in.width, out.width);
  const std::vector<int32_t> rows = nearest_samples(filter, in.height, out.height);
  for (int y = 0; y < out.height; ++y) {
    for (int x = 0; x < out.width; ++x) out.row(y)[x] = in.row(rows[y])[columns[x]];
  }
}

}  // namespace

void resample(const WidePlane& plane, Filter filter, WideSample sample, WidePlane& between,
              WidePlane& out) {
  if (is_nearest(filter)) return nearest(plane, filter, out);
  const bool wide = plane.width != out.width, high = plane.height != out.height;
  if (!wide && !high) {
    out.samples = plane.samples;
  } else if (!high) {
    horizontal(plane, filter, sample, out);
  } else if (!wide) {
    vertical(plane, filter, sample, out);
  } else if (vertical_first(filter, plane.width, plane.height, out.width, out.height)) {
    between.resize(plane.width, out.height);
    vertical(plane, filter, sample, between);
    horizontal(between, filter, sample, out);
  } else {
    between.resize(out.width, plane.height);
    horizontal(plane, filter, sample, between);
    vertical(between, filter, sample, out);
  }
}

}  // namespace headrace

#else  // at each SIMD level, using the compiler's vectors: sums stay in Pillow's order

#include HEADRACE_LANES

namespace headrace::HEADRACE_LEVEL {
namespace {

constexpr int kVector = kLanes > 4 ? kLanes / 2 : 2;  // doubles per vector; every supported CPU has
                                                      // two
typedef double WideSums __attribute__((vector_size(kVector * sizeof(double))));
typedef float WideFloats __attribute__((vector_size(kVector * sizeof(float))));
typedef int32_t WideNumbers __attribute__((vector_size(kVector * sizeof(int32_t))));
constexpr int kVectors = kWideLanes / kVector;

// Resamples kWideLanes rows at once: sample x of row r is samples[x * kWideLanes + r]; the sums
// have the same layout.
void across(const double* samples, const WideTaps& taps, double* sums) {
  for (int i = 0; i < taps.outputs; ++i) {
    const double* at = samples + ptrdiff_t{taps.first[i]} * kWideLanes;
    const double* const weights = taps.weights + ptrdiff_t{i} * taps.most;
    WideSums sum[kVectors] = {};
    for (int t = 0; t < taps.count[i]; ++t, at += kWideLanes) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        WideSums sample;
        std::memcpy(&sample, at + v * kVector, sizeof(sample));
        sum[v] += sample * weights[t];
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      std::memcpy(sums + ptrdiff_t{i} * kWideLanes + v * kVector, &sum[v], sizeof(sum[v]));
    }
  }
}

// One output row of `width` columns, from several rows. Reads and writes up to kWideLanes - 1
// columns past the last.
void down(const float* const rows[], const double* weights, int count, int width, double* sums) {
  for (int x = 0; x < width; x += kWideLanes) {
    WideSums sum[kVectors] = {};
    for (int t = 0; t < count; ++t) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        WideFloats sample;
        std::memcpy(&sample, rows[t] + x + v * kVector, sizeof(sample));
        sum[v] += __builtin_convertvector(sample, WideSums) * weights[t];
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      std::memcpy(sums + x + v * kVector, &sum[v], sizeof(sum[v]));
    }
  }
}

// Converts as WideSample specifies; `count` is a multiple of kWideLanes.
void rounded(const double* sums, int count, bool whole, float* out) {
  for (int i = 0; i < count; i += kVector) {
    WideSums sum;
    std::memcpy(&sum, sums + i, sizeof(sum));
    WideFloats sample;
    if (whole) {  // Pillow's ROUND_UP, of a value already clamped to the range
      sum = sum > 0.0 ? sum : WideSums{};
      sum = sum < 65535.0 ? sum : WideSums{} + 65535.0;
      sample = __builtin_convertvector(__builtin_convertvector(sum + 0.5, WideNumbers), WideFloats);
    } else {
      sample = __builtin_convertvector(sum, WideFloats);
    }
    std::memcpy(out + i, &sample, sizeof(sample));
  }
}

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL

#endif
