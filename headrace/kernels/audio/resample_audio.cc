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
  double base;    // what the filter lets pass, of the lower rate
  int64_t width;  // half the filter, in input samples
};

Ratio ratio_of(const ResampleSettings& settings) {
  const int64_t common = std::gcd(settings.orig_freq, settings.new_freq);
  const int64_t orig = settings.orig_freq / common, fresh = settings.new_freq / common;
  const double base = double(std::min(orig, fresh)) * settings.rolloff;
  const auto width =
      static_cast<int64_t>(std::ceil(double(settings.lowpass_filter_width) * double(orig) / base));
  return {orig, fresh, base, width};
}

// Outputs of a block's frame at least, so that frames overlap little.
constexpr int64_t kLeastRun = 32;

double sine_of(double angle) {  // of any angle, in radians
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

int64_t AudioResampler::weights_of(const ResampleSettings& settings) {
  const Ratio ratio = ratio_of(settings);
  return ratio.fresh * (2 * ratio.width + 2);
}

AudioResampler::AudioResampler(const ResampleSettings& settings) {
  const Ratio ratio = ratio_of(settings);
  repeats_ = (kLeastRun + ratio.fresh - 1) / ratio.fresh;
  orig_ = ratio.orig * repeats_;
  new_ = ratio.fresh * repeats_;
  width_ = ratio.width;
  const double most = settings.lowpass_filter_width, pi = std::numbers::pi;
  const double whole_bessel = bessel_i0(settings.beta);
  std::vector<float> weights;
  for (int64_t p = 0; p < new_; ++p) {
    const int64_t turn = p / ratio.fresh, phase = p % ratio.fresh;
    // Where t below lies within the filter.
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

void AudioResampler::resample(const float* in, int64_t length, float* out) const {
  const FrameKernels& kernels = frame_kernels();
  const auto row = static_cast<size_t>(kernels.lanes) * sizeof(float);
  Buffer samples(size_t(span_) * row), made(size_t(new_) * row);
  auto* const block = reinterpret_cast<float*>(samples.data());
  auto* const sums = reinterpret_cast<float*>(made.data());
  PaddedSignal signal(in, length, SignalEdge::kZeros);
  const int64_t outputs = length_after(length), runs = (outputs + new_ - 1) / new_;
  for (int64_t first = 0; first < runs; first += kernels.lanes) {
    const auto count = static_cast<int>(std::min<int64_t>(kernels.lanes, runs - first));
    const int64_t stretch = (kernels.lanes - 1) * orig_ + span_;
    const float* const from =
        signal.stretch(first * orig_ - width_, stretch + 3, (count - 1) * orig_ + span_);
    kernels.gather(from, orig_, static_cast<int>(span_), nullptr, block);
    kernels.weigh(phases_, block, kernels.lanes, kernels.lanes, sums, kernels.lanes);
    // The last run of all may be cut short.
    const int64_t last = outputs - (first + count - 1) * new_;
    const bool whole = last >= new_;
    kernels.scatter(sums, static_cast<int>(new_), whole ? count : count - 1, new_,
                    out + first * new_);
    for (int64_t p = 0; !whole && p < last; ++p) {
      out[(first + count - 1) * new_ + p] = sums[p * kernels.lanes + count - 1];
    }
  }
}

}  // namespace headrace
