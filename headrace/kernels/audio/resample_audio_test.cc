// SPDX-License-Identifier: Apache-2.0
// Compared with torchaudio's definition, as a dense matrix in float64.
#include "headrace/kernels/audio/resample_audio.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "headrace/kernels/dispatch.h"

namespace headrace {
namespace {

std::vector<double> defined(const std::vector<float>& in, const ResampleSettings& settings) {
  const int64_t common = std::gcd(settings.orig_freq, settings.new_freq);
  const int64_t o = settings.orig_freq / common, n = settings.new_freq / common;
  const double most = settings.lowpass_filter_width;
  const double base = double(std::min(o, n)) * settings.rolloff;
  const auto width = int64_t(std::ceil(most * double(o) / base));
  const auto length = int64_t(in.size());
  std::vector<double> out(size_t((length * n + o - 1) / o));
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t k = int64_t(i) / n, p = int64_t(i) % n;
    for (int64_t tap = 0; tap < 2 * width + o; ++tap) {
      const int64_t at = k * o + tap - width;
      if (at < 0 || at >= length) continue;
      double t = (-double(p) / double(n) + double(tap - width) / double(o)) * base;
      t = std::clamp(t, -most, most);
      const double window =
          settings.kaiser
              ? std::cyl_bessel_i(0, settings.beta * std::sqrt(1 - t * t / most / most)) /
                    std::cyl_bessel_i(0, settings.beta)
              : std::pow(std::cos(t * std::numbers::pi / most / 2), 2);
      const double sinc = t == 0 ? 1 : std::sin(std::numbers::pi * t) / (std::numbers::pi * t);
      out[i] += sinc * window * base / double(o) * double(in[size_t(at)]);
    }
  }
  return out;
}

std::vector<float> made(const std::vector<float>& in, const ResampleSettings& settings) {
  const AudioResampler resampler(settings);
  std::vector<float> out(size_t(resampler.length_after(int64_t(in.size()))) + 1, -7.0f);
  resampler.resample(in.data(), int64_t(in.size()), out.data());
  EXPECT_EQ(out.back(), -7.0f);
  out.pop_back();
  return out;
}

std::vector<float> audio(size_t count) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> value(-1, 1);
  std::vector<float> out(count);
  for (float& v : out) v = value(random);
  return out;
}

TEST(AudioResampler, EqualsTorchaudiosFilterAtEachLevel) {
  const std::pair<int, int> rates[] = {
      {44100, 16000}, {48000, 16000}, {16000, 48000}, {22050, 16000}, {16000, 22050},
      {17600, 16000}, {14400, 16000}, {7, 3},         {1, 1},         {16000, 15999}};
  for (const auto& [from, to] : rates) {
    for (const size_t count : {1u, 40u, 1000u, 4444u}) {
      for (const bool kaiser : {false, true}) {
        const ResampleSettings settings{.orig_freq = from,
                                        .new_freq = to,
                                        .lowpass_filter_width = kaiser ? 16 : 6,
                                        .kaiser = kaiser};
        if (from == 16000 && to == 15999 && (kaiser || count > 1000)) continue;
        const std::vector<float> in = audio(count);
        const std::vector<double> want = defined(in, settings);
        std::vector<float> first;
        for (const SimdLevel level : available_levels()) {
          set_simd_level(level);
          const std::vector<float> got = made(in, settings);
          ASSERT_EQ(got.size(), want.size());
          for (size_t i = 0; i < got.size(); ++i) {
            ASSERT_NEAR(got[i], want[i], 1e-6) << from << " " << to << " " << count << " " << i;
          }
          if (first.empty()) first = got;
          EXPECT_EQ(got, first) << name_of(level);
        }
      }
    }
  }
}

TEST(AudioResampler, ASegmentEqualsTheSameRangeOfTheWholeSignalExactly) {
  const std::vector<float> in = audio(3000);
  const auto whole_length = int64_t(in.size());
  for (const auto& [from, to] :
       {std::pair{44100, 16000}, {48000, 16000}, {8000, 16000}, {16000, 17600}, {3, 7}}) {
    const ResampleSettings settings{.orig_freq = from, .new_freq = to};
    const AudioResampler resampler(settings);
    const std::vector<float> whole = made(in, settings);
    const auto outputs = int64_t(whole.size());
    for (int64_t first = 0; first < outputs; first += 37) {
      for (const int64_t wanted : {int64_t{1}, int64_t{200}, outputs - first}) {
        if (first + wanted > outputs) continue;
        const AudioResampler::Stretch stretch = resampler.stretch_for(first, wanted);
        const int64_t end = std::min(stretch.end, whole_length);
        ASSERT_LT(stretch.begin, end);
        const std::vector<float> part =
            made({in.begin() + stretch.begin, in.begin() + end}, settings);
        ASSERT_GE(int64_t(part.size()), stretch.skipped + wanted);
        for (int64_t i = 0; i < wanted; ++i) {
          ASSERT_EQ(part[size_t(stretch.skipped + i)], whole[size_t(first + i)])
              << from << " " << to << " " << first << " " << i;
        }
        EXPECT_LE(end - stretch.begin, wanted * from / to + 3 * from / 100 + 3 * 64)
            << from << " " << to;
      }
    }
  }
}

TEST(AudioResampler, PredictsTheOutputLength) {
  const AudioResampler resampler({.orig_freq = 44100, .new_freq = 16000});
  EXPECT_EQ(resampler.length_after(0), 0);
  EXPECT_EQ(resampler.length_after(1), 1);
  EXPECT_EQ(resampler.length_after(441), 160);
  EXPECT_EQ(resampler.length_after(442), 161);
  EXPECT_EQ(resampler.length_after(44100LL * 3600 * 24), 16000LL * 3600 * 24);
}

}  // namespace
}  // namespace headrace
