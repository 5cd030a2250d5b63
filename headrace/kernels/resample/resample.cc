// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/resample/resample.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "headrace/kernels/resample/resample_levels.h"

namespace headrace {
namespace {

// Pillow stores boxes as float32, so sizes above 2^24 are rounded as they are there.
double as_box(int size) { return static_cast<float>(size); }

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

const ResampleKernels& kernels_of(SimdLevel level) {
  static const ByLevel<const ResampleKernels*> by_level{
      resample_kernels_scalar(), resample_kernels_avx2(), resample_kernels_avx512(),
      resample_kernels_neon()};
  return *by_level[level];
}

// Note [Weights without antialiasing]
// Like torch's interpolate(antialias=False) for uint8 tensors on CPUs with AVX2 or more: a cubic of
// a = -0.75, weights beyond the border folded into the edge, and 16-bit weights with as many
// fraction bits as the largest of an axis allows. Verified for torch 2.13 and 2.15: no value
// differs. The weight at a distance from the output's position, in inputs.
double filter_without_antialias(Filter filter, double x) {
  x = std::abs(x);
  if (filter == Filter::kBilinearNoAntialias) return x < 1 ? 1 - x : 0;
  constexpr double a = -0.75;
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// The inputs of one output.
struct InterpolationTaps {
  int first = 0, count = 0;      // of the inputs
  std::array<double, 4> weight;  // of the same inputs, before rounding
  double largest = 0;            // largest weight while weights beyond a border were folded in
};

// REQUIRES: is_without_antialias(filter).
InterpolationTaps interpolation_taps(Filter filter, int input, int output, int at) {
  const int taps = filter == Filter::kBilinearNoAntialias ? 2 : 4, half = taps / 2;
  const double scale = static_cast<double>(input) / output;
  double place = scale * (at + 0.5) - 0.5;
  if (filter == Filter::kBilinearNoAntialias) place = std::max(place, 0.0);
  // torch rounds to float32 here, which can round up to the next input for positions just below it.
  const int before = std::min(static_cast<int>(std::floor(static_cast<float>(place))), input - 1);
  const double part = std::clamp(place - before, 0.0, 1.0);
  const int first = before - half + 1;
  InterpolationTaps out{.first = std::max(first, 0), .weight = {}};
  out.count = std::min(first + taps, input) - out.first;
  for (int t = 0; t < taps; ++t) {
    double& weight = out.weight[size_t(std::clamp(first + t, 0, input - 1) - out.first)];
    weight += filter_without_antialias(filter, t + 1 - half - part);
    out.largest = std::max(out.largest, weight);
  }
  return out;
}

// Fraction bits of a weight: one number for all outputs of an axis.
int interpolation_precision(Filter filter, int input, int output) {
  double most = 0;
  for (int at = 0; at < output; ++at) {
    most = std::max(most, interpolation_taps(filter, input, output, at).largest);
  }
  int precision = 0;
  while (precision < 22 && static_cast<int>(0.5 + most * (1 << (precision + 1))) < 1 << 15) {
    ++precision;
  }
  return precision;
}

// Converts a weight of this precision to units of 2^-22, as stored in tables.
int32_t interpolation_weight(double weight, int precision) {
  const double scaled = weight * (1 << precision);
  return static_cast<int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5) * (1 << (22 - precision));
}

}  // namespace

// Note [Pass order]
// Both passes round to 8 bits, so their order affects the result. Up to version 12, Pillow always
// resized horizontally first. Since version 13 (python-pillow/Pillow#9549) it resizes vertically
// first if that leaves clearly less work: when the height shrinks, and by more than twice as many
// pixels as the width does (a width that grows counts as shrinking by a negative number). The rule
// applies to the full size of the resized picture, not to a range of its output. It was verified
// for Pillow 13.0.0 in two ways: against the comparison in the compiled ImagingResample of its
// x86-64 wheel, and by resizing thousands of random pictures (bilinear and bicubic, up and down,
// many of them on the boundary of the rule) in both orders: each result that distinguishes the two
// orders followed it. If both orders give equal pixels, or only one axis changes (Pillow skips the
// other pass), the rule has no visible effect.
bool vertical_first(Filter filter, int width, int height, int to_width, int to_height) {
  if (is_without_antialias(filter)) return false;
  const int64_t shrinks_by = int64_t{height} - to_height;
  return shrinks_by > 0 && shrinks_by > 2 * (int64_t{width} - to_width);
}

FilterSpan FilterScale::span(int output) const {
  if (!is_without_antialias(filter)) return antialiased_span(output);
  const InterpolationTaps taps = interpolation_taps(filter, input, outputs, output);
  return {.first = taps.first, .count = taps.count};
}

double filter_weight(Filter filter, double x) {
  if (is_polynomial(filter)) return polynomial_weight(filter, x);
  if (filter == Filter::kLanczos) return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
  x = x < 0.0 ? -x : x;  // kHamming, with Pillow's float constants, which do not add up to 1
  if (x == 0) return 1.0;
  return x < 1.0 ? sinc(x) * (0.54f + 0.46f * std::cos(x * std::numbers::pi)) : 0.0;
}

std::vector<int32_t> nearest_samples(Filter filter, int input, int output) {
  std::vector<int32_t> samples(output);
  if (filter != Filter::kNearest) {
    const float scale = static_cast<float>(input) / static_cast<float>(output);
    const float half = filter == Filter::kNearestExactTorch ? 0.5F : 0.0F;
    for (int i = 0; i < output; ++i) {
      const float at = (static_cast<float>(i) + half) * scale;
      samples[i] = std::min(static_cast<int32_t>(at), input - 1);
    }
    return samples;
  }
  const double step = as_box(input) / output;
  double at = 0.0 + step * 0.5;  // added up, not multiplied, to reproduce Pillow's rounding errors
  for (int32_t& sample : samples) {
    sample = static_cast<int32_t>(at);
    at += step;
  }
  return samples;
}

void ResampleAxis::make(Filter filter, int input, int output, int begin, int end, bool flip_input,
                        bool flip_output) {
  copies_ = input == output;
  if (copies_) {
    low_ = flip_input ? input - end : begin;
    high_ = flip_input ? input - begin : end;
    mirrored_ = descending_ = flip_input != flip_output;
    tables_.outputs = tables_.padded = end - begin;
    max_count_ = 1;
    return;
  }
  ResampleTables& t = tables_;
  t.outputs = end - begin;
  t.padded =
      (t.outputs + ResampleTables::kLanes - 1) / ResampleTables::kLanes * ResampleTables::kLanes;
  t.first.resize(t.padded);
  t.count.resize(t.padded);
  level_ = simd_level();
  if (is_nearest(filter)) {
    place_nearest(filter, input, output, begin, flip_output);
  } else {
    const FilterScale scale(filter, input, output);
    place_outputs(scale, begin, flip_output);
    if (is_without_antialias(filter)) {
      set_interpolation_weights(filter, input, output, begin, flip_output);
    } else {
      scratch_.resize(size_t(t.taps) * 8);
      kernels_of(level_).weigh({.filter = filter,
                                .inverse = scale.inverse,
                                .centers = centers_.data(),
                                .first = t.first.data(),
                                .count = t.count.data(),
                                .padded = t.padded,
                                .taps = t.taps,
                                .scratch = scratch_.data(),
                                .weights = t.weights.data()});
    }
  }
  if (flip_input) mirror_inputs(input);
  descending_ = flip_input != flip_output;
  trim_to_used();
  kernels_of(level_).tabulate(t);
}

void ResampleAxis::place_outputs(const FilterScale& scale, int begin, bool reversed) {
  ResampleTables& t = tables_;
  centers_.resize(t.padded);
  max_count_ = 0;
  for (int i = 0; i < t.outputs; ++i) {
    const FilterSpan span = scale.span(begin + (reversed ? t.outputs - 1 - i : i));
    centers_[i] = span.center;
    t.first[i] = span.first;
    t.count[i] = span.count;
    max_count_ = std::max(max_count_, span.count);
  }
  for (int i = t.outputs; i < t.padded; ++i) {
    centers_[i] = centers_[t.outputs - 1];
    t.first[i] = t.first[t.outputs - 1];
    t.count[i] = 0;
  }
  t.taps = (max_count_ + 3) / 4 * 4;
  t.weights.resize(size_t(t.taps) * t.padded);
}

void ResampleAxis::set_interpolation_weights(Filter filter, int input, int output, int begin,
                                             bool reversed) {
  ResampleTables& t = tables_;
  const int precision = interpolation_precision(filter, input, output);
  std::ranges::fill(t.weights, 0);
  for (int i = 0; i < t.outputs; ++i) {
    const InterpolationTaps taps =
        interpolation_taps(filter, input, output, begin + (reversed ? t.outputs - 1 - i : i));
    for (int tap = 0; tap < taps.count; ++tap) {
      t.weights[size_t(tap) * t.padded + i] =
          interpolation_weight(taps.weight[size_t(tap)], precision);
    }
  }
}

void ResampleAxis::place_nearest(Filter filter, int input, int output, int begin, bool reversed) {
  ResampleTables& t = tables_;
  const std::vector<int32_t> samples = nearest_samples(filter, input, output);
  for (int i = 0; i < t.padded; ++i) {
    const int j = std::min(i, t.outputs - 1);
    t.first[i] = samples[begin + (reversed ? t.outputs - 1 - j : j)];
    t.count[i] = i < t.outputs ? 1 : 0;
  }
  max_count_ = 1;
  t.taps = 4;
  t.weights.assign(size_t(t.taps) * t.padded, 0);
  std::fill_n(t.weights.begin(), t.outputs, 1 << 22);  // copies the sample exactly
}

void ResampleAxis::mirror_inputs(int input) {
  ResampleTables& t = tables_;
  for (int i = 0; i < t.padded; ++i) {
    const int last = std::min(i, t.outputs - 1), count = t.count[last];
    if (i == last) {
      t.first[i] = input - t.first[i] - count;
    } else {
      t.first[i] = t.first[last];
    }
    for (int a = 0, b = t.count[i] - 1; a < b; ++a, --b) {
      std::swap(t.weights[size_t(a) * t.padded + i], t.weights[size_t(b) * t.padded + i]);
    }
  }
}

void ResampleAxis::trim_to_used() {
  ResampleTables& t = tables_;
  const int one_end = 0, other_end = t.outputs - 1;  // first and first + count are monotonic
  low_ = std::min(t.first[one_end], t.first[other_end]);
  high_ = std::max(t.first[one_end] + t.count[one_end], t.first[other_end] + t.count[other_end]);
  for (int32_t& first : t.first) first -= low_;
  t.samples = high_ - low_;
}

void ResampleAxis::horizontal(const uint8_t* const in[], int channels, uint8_t* out,
                              ptrdiff_t plane) const {
  kernels_of(level_).horizontal(tables_, in, channels, out, plane);
}

void ResampleAxis::vertical(int i, const uint8_t* const rows[], int bytes, uint8_t* out) const {
  kernels_of(level_).vertical(tables_, i, rows, bytes, out);
}

size_t ResampleAxis::held_bytes() const {
  const ResampleTables& t = tables_;
  return (t.first.capacity() + t.count.capacity() + t.weights.capacity() + t.base.capacity()) * 4 +
         t.indices.capacity() + t.digits.capacity() +
         (centers_.capacity() + scratch_.capacity()) * sizeof(double);
}

}  // namespace headrace
