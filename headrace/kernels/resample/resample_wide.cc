// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/resample/resample_wide.h"

#include <algorithm>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/resample/resample.h"
#include "headrace/kernels/resample/resample_wide_levels.h"

namespace headrace {
namespace {
constexpr int kVector = 2;  // what every CPU of either kind has
}  // namespace
}  // namespace headrace

// After it:
#include "headrace/kernels/resample/resample_wide_loops.h"

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

const WideKernels& wide_kernels() {
  static const ByLevel<const WideKernels*> by_level{&kKernels, wide_kernels_avx2(),
                                                    wide_kernels_avx512()};
  return *by_level.in_force();
}

// Eight rows side by side; below the last one it stands again.
void horizontal(const WidePlane& in, Filter filter, WideSample sample, WidePlane& out) {
  const int to_width = out.width;
  const WideKernels& kernels = wide_kernels();
  const Weights weights(filter, in.width, to_width);
  std::vector<double> samples(size_t(in.width) * kWideLanes), sums(size_t(to_width) * kWideLanes);
  std::vector<float> rounded(sums.size());
  for (int y = 0; y < in.height; y += kWideLanes) {
    const int rows = std::min(kWideLanes, in.height - y);
    for (int r = 0; r < kWideLanes; ++r) {
      const float* const row = in.row(y + std::min(r, rows - 1));
      for (int x = 0; x < in.width; ++x) samples[size_t(x * kWideLanes + r)] = row[x];
    }
    kernels.across(samples.data(), weights.taps(), sums.data());
    kernels.rounded(sums.data(), static_cast<int>(sums.size()), sample == WideSample::kUInt16,
                    rounded.data());
    for (int r = 0; r < rows; ++r) {
      float* const row = out.row(y + r);
      for (int x = 0; x < to_width; ++x) row[x] = rounded[size_t(x * kWideLanes + r)];
    }
  }
}

void vertical(const WidePlane& in, Filter filter, WideSample sample, WidePlane& out) {
  const int to_height = out.height;
  const WideKernels& kernels = wide_kernels();
  const Weights weights(filter, in.height, to_height);
  const size_t padded = (size_t(in.width) + kWideLanes - 1) / kWideLanes * kWideLanes;
  std::vector<double> sums(padded);
  std::vector<float> rounded(padded);
  std::vector<const float*> rows(static_cast<size_t>(weights.most));
  for (int y = 0; y < to_height; ++y) {
    const int count = weights.count[size_t(y)];
    for (int t = 0; t < count; ++t) rows[size_t(t)] = in.row(weights.first[size_t(y)] + t);
    kernels.down(rows.data(), weights.of_output(y), count, in.width, sums.data());
    kernels.rounded(sums.data(), static_cast<int>(padded), sample == WideSample::kUInt16,
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
