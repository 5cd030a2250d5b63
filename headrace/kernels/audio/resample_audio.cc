// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/audio/resample_audio.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/kernels/audio/frame_kernels.h"
#include "headrace/kernels/audio/padded_signal.h"

namespace headrace {
namespace {

struct Ratio {
  int64_t orig, fresh;
  double base;    // cutoff frequency relative to the lower rate
  int64_t width;  // half the filter's width, in input samples
};

Ratio ratio_of(const ResampleSettings& settings) {
  const int64_t common = std::gcd(settings.orig_freq, settings.new_freq);
  const int64_t orig = settings.orig_freq / common, fresh = settings.new_freq / common;
  const double base = double(std::min(orig, fresh)) * settings.rolloff;
  const auto width =
      static_cast<int64_t>(std::ceil(double(settings.lowpass_filter_width) * double(orig) / base));
  return {orig, fresh, base, width};
}

// Minimum outputs per frame of a block, so that frames overlap little.
constexpr int64_t kMinRun = 32;

double sine_of(double angle) {  // any angle, in radians
  const double turns = angle / (2 * std::numbers::pi);
  const double rest = (turns - std::floor(turns)) * 2 * std::numbers::pi;
  const double x = rest - std::numbers::pi;  // sin(rest) = -sin(x)
  const double near =
      std::abs(x) > std::numbers::pi / 2 ? std::copysign(std::numbers::pi, x) - x : x;
  double sum = 1;
  for (int i = 26; i >= 2; i -= 2) sum = 1 - sum * near * near / double(i * (i + 1));
  return -near * sum;
}

// The modified Bessel function of order 0.
double bessel_i0(double x) {
  double sum = 1, term = 1;
  for (int k = 1; k < 500 && term > sum * 1e-18; ++k) {
    term *= (x / (2 * k)) * (x / (2 * k));
    sum += term;
  }
  return sum;
}

}  // namespace

int64_t AudioResampler::weight_count(const ResampleSettings& settings) {
  const Ratio ratio = ratio_of(settings);
  return ratio.fresh * (2 * ratio.width + 2);
}

AudioResampler::AudioResampler(const ResampleSettings& settings) {
  const Ratio ratio = ratio_of(settings);
  repeats_ = (kMinRun + ratio.fresh - 1) / ratio.fresh;
  orig_ = ratio.orig * repeats_;
  new_ = ratio.fresh * repeats_;
  width_ = ratio.width;
  const double most = settings.lowpass_filter_width, pi = std::numbers::pi;
  const double whole_bessel = bessel_i0(settings.beta);
  std::vector<float> weights;
  for (int64_t p = 0; p < new_; ++p) {
    const int64_t turn = p / ratio.fresh, phase = p % ratio.fresh;
    // Range of i where t below lies within the filter.
    const double middle = double(phase) / double(ratio.fresh) * double(ratio.orig);
    const auto first = static_cast<int64_t>(std::floor(middle));
    weights.clear();
    for (int64_t i = first; i <= first + 2 * ratio.width + 1; ++i) {
      const double place =
          -double(phase) / double(ratio.fresh) + double(i - ratio.width) / double(ratio.orig);
      const double t = place * ratio.base;
      double weight = 0;
      if (std::abs(t) < most) {
        double window = 0;
        if (settings.kaiser) {
          const double share = t / most;
          window = bessel_i0(settings.beta * std::sqrt(1 - share * share)) / whole_bessel;
        } else {
          window = sine_of(t * pi / most / 2 + pi / 2);
          window *= window;
        }
        const double sinc = t == 0 ? 1 : sine_of(t * pi) / (t * pi);
        weight = sinc * window * ratio.base / double(ratio.orig);
      }
      weights.push_back(static_cast<float>(weight));
    }
    phases_.add(turn * ratio.orig + first, weights);
  }
  span_ = 0;
  for (const SparseRows::Row& row : phases_.rows()) span_ = std::max(span_, row.first + row.count);
}

int64_t AudioResampler::length_after(int64_t length) const {
  return (length * new_ + orig_ - 1) / orig_;
}

// Starts at a multiple of a run, because the filter's phases repeat per run, and early enough that
// all samples with nonzero weight are included.
AudioResampler::Stretch AudioResampler::stretch_for(int64_t first, int64_t count) const {
  const int64_t run = std::max<int64_t>(first / new_ - (width_ + orig_ - 1) / orig_, 0);
  const int64_t last = std::max<int64_t>(first + count - 1, 0) / new_;
  return {run * orig_, last * orig_ - width_ + span_, first - run * new_};
}

// Adjacent groups of lanes: enough that the loop is not bound by loading the weights, which are
// loaded once for all groups.
constexpr int kGroups = 4;

void AudioResampler::resample(const float* in, int64_t length, float* out) const {
  const FrameKernels& kernels = frame_kernels();
  const int lanes = kernels.lanes, most = kGroups * lanes;
  Buffer samples(size_t(span_ * most) * sizeof(float)), made(size_t(new_ * most) * sizeof(float));
  auto* const block = reinterpret_cast<float*>(samples.data());
  auto* const sums = reinterpret_cast<float*>(made.data());
  PaddedSignal signal(in, length, SignalEdge::kZeros);
  const int64_t outputs = length_after(length), runs = (outputs + new_ - 1) / new_;
  for (int64_t begin = 0; begin < runs; begin += most) {
    const int groups =
        static_cast<int>(std::min<int64_t>(kGroups, (runs - begin + lanes - 1) / lanes));
    for (int group = 0; group < groups; ++group) {
      const int64_t first = begin + group * lanes;
      const int64_t count = std::min<int64_t>(lanes, runs - first);
      const int64_t stretch = (lanes - 1) * orig_ + span_;
      const float* const from =
          signal.stretch(first * orig_ - width_, stretch + 3, (count - 1) * orig_ + span_);
      kernels.gather(from, orig_, static_cast<int>(span_), nullptr, block + group * lanes, most);
    }
    kernels.weigh(phases_, block, most, groups * lanes, sums, most);
    for (int group = 0; group < groups; ++group) {
      const int64_t first = begin + group * lanes;
      const auto count = static_cast<int>(std::min<int64_t>(lanes, runs - first));
      // The very last run may be truncated.
      const int64_t last = outputs - (first + count - 1) * new_;
      const bool whole = last >= new_;
      const float* const sum = sums + group * lanes;
      kernels.scatter(sum, most, static_cast<int>(new_), whole ? count : count - 1, new_,
                      out + first * new_);
      for (int64_t p = 0; !whole && p < last; ++p) {
        out[(first + count - 1) * new_ + p] = sum[p * most + count - 1];
      }
    }
  }
}

}  // namespace headrace
