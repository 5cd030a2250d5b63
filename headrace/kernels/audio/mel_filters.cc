// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/audio/mel_filters.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "headrace/base/random.h"
#include "headrace/kernels/audio/real_fft.h"

namespace headrace {
namespace {

constexpr double kLogStart = 1000, kHzPerMel = 200.0 / 3;
constexpr double kLogStartMels = kLogStart / kHzPerMel;
const double kLogStep = portable_log(6.4) / 27;

double log10_in_double(double v) { return portable_log(v) * std::numbers::log10e; }

double mel_of(double hertz, bool slaney) {
  if (!slaney) return 2595 * log10_in_double(1 + hertz / 700);
  if (hertz < kLogStart) return hertz / kHzPerMel;
  return kLogStartMels + portable_log(hertz / kLogStart) / kLogStep;
}

// Number: the type that each step is rounded to.
template <class Number>
Number power_of_ten(Number v) {
  return static_cast<Number>(portable_exp(double(v) * std::numbers::ln10));
}

template <class Number>
Number hertz_of(Number mel, bool slaney) {
  if (!slaney) return Number(700) * (power_of_ten<Number>(mel / Number(2595)) - Number(1));
  if (mel < Number(kLogStartMels)) return Number(kHzPerMel) * mel;
  const Number beyond = Number(kLogStep) * (mel - Number(kLogStartMels));
  return Number(kLogStart) * static_cast<Number>(portable_exp(double(beyond)));
}

// Like torch.linspace: steps from both ends to the middle, each number rounded once.
std::vector<float> evenly(float first, float last, int count) {
  const float step = (last - first) / static_cast<float>(std::max(count - 1, 1));
  std::vector<float> out;
  for (int i = 0; i < count; ++i) {
    const bool lower = i < count / 2;
    out.push_back(lower ? std::fma(step, static_cast<float>(i), first)
                        : std::fma(-step, static_cast<float>(count - 1 - i), last));
  }
  return out;
}
std::vector<double> evenly(double first, double last, int count) {
  std::vector<double> out;
  for (int i = 0; i < count; ++i) {
    out.push_back(first + (last - first) * double(i) / double(std::max(count - 1, 1)));
  }
  return out;
}

template <class Number>
SparseRows mel_filters(const MelFilters& how) {
  const double half = std::floor(how.sample_rate / 2);
  const std::vector<Number> bins = evenly(Number(0), static_cast<Number>(half), how.bins);
  const auto mel = [&](double hertz) {
    return static_cast<Number>(how.linear ? hertz : mel_of(hertz, how.slaney_scale));
  };
  std::vector<Number> points = evenly(mel(how.lowest), mel(how.highest), how.count + 2);
  for (Number& point : points) point = how.linear ? point : hertz_of(point, how.slaney_scale);
  SparseRows rows;
  std::vector<float> weights(bins.size());
  for (size_t m = 0; m + 2 < points.size(); ++m) {
    const Number left = points[m], middle = points[m + 1], right = points[m + 2];
    const Number norm = how.slaney_norm ? Number(2) / (right - left) : Number(1);
    for (size_t k = 0; k < bins.size(); ++k) {
      const Number down = -(left - bins[k]) / (middle - left);
      const Number up = (right - bins[k]) / (right - middle);
      weights[k] = static_cast<float>(std::max(Number(0), std::min(down, up)) * norm);
    }
    rows.add(0, weights);
  }
  return rows;
}

}  // namespace

SparseRows torchaudio_mel_filters(const MelFilters& how) { return mel_filters<float>(how); }
SparseRows exact_mel_filters(const MelFilters& how) { return mel_filters<double>(how); }

SparseRows kaldi_mel_filters(int count, int samples, double sample_rate, double lowest,
                             double highest) {
  const auto scalar_mel = [](double hertz) { return 1127 * portable_log(1 + hertz / 700); };
  const auto first = static_cast<float>(scalar_mel(lowest));
  const auto step =
      static_cast<float>((scalar_mel(highest) - scalar_mel(lowest)) / double(count + 1));
  const auto bin_width = static_cast<float>(sample_rate / samples);
  std::vector<float> mels;
  for (int k = 0; k < samples / 2; ++k) {
    const float ratio = 1 + bin_width * float(k) / 700;
    mels.push_back(1127 * static_cast<float>(portable_log(double(ratio))));
  }
  SparseRows rows;
  std::vector<float> weights(mels.size());
  for (int m = 0; m < count; ++m) {
    const float left = first + float(m) * step, middle = first + float(m + 1) * step,
                right = first + float(m + 2) * step;
    for (size_t k = 0; k < mels.size(); ++k) {
      const float up = (mels[k] - left) / (middle - left);
      const float down = (right - mels[k]) / (right - middle);
      weights[k] = std::max(0.0f, std::min(up, down));
    }
    rows.add(0, weights);
  }
  return rows;
}

SparseRows dct_rows(int count, int columns, bool ortho) {
  SparseRows rows;
  std::vector<float> weights(static_cast<size_t>(columns));
  for (int k = 0; k < count; ++k) {
    const double factor = !ortho ? 2 : k == 0 ? std::sqrt(1.0 / columns) : std::sqrt(2.0 / columns);
    for (int n = 0; n < columns; ++n) {
      const int64_t part = int64_t{2 * n + 1} * k;  // angle as a fraction of a turn, in units of 1
                                                    // / (4 * columns)
      weights[size_t(n)] =
          static_cast<float>(factor * unit_root(part % (4 * columns), 4 * columns).cosine);
    }
    rows.add(0, weights);
  }
  return rows;
}

}  // namespace headrace
