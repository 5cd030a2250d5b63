// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/audio/mel_filters.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "headrace/kernels/audio/padded_signal.h"
#include "headrace/kernels/audio/window.h"

namespace headrace {
namespace {

double weight(const SparseRows& rows, int row, int64_t column) {
  const SparseRows::Row& at = rows.rows()[size_t(row)];
  if (column < at.first || column >= at.first + at.count) return 0;
  return double(rows.weights()[at.weights + size_t(column - at.first)]);
}

// The triangles of the mel scale's definition.
TEST(MelFilters, AreTrianglesEvenlySpacedInMel) {
  for (const bool slaney : {false, true}) {
    const auto mel = [&](double f) {
      if (!slaney) return 2595 * std::log10(1 + f / 700);
      return f < 1000 ? f * 3 / 200 : 15 + std::log(f / 1000) / (std::log(6.4) / 27);
    };
    const auto hertz = [&](double m) {
      if (!slaney) return 700 * (std::pow(10, m / 2595) - 1);
      return m < 15 ? m * 200 / 3 : 1000 * std::exp(std::log(6.4) / 27 * (m - 15));
    };
    const MelFilters how{.count = 80,
                         .bins = 201,
                         .lowest = 20,
                         .highest = 7600,
                         .slaney_scale = slaney,
                         .slaney_norm = slaney};
    const SparseRows exact = exact_mel_filters(how), as_torchaudio = torchaudio_mel_filters(how);
    const auto point = [&](int m) { return hertz(mel(20) + (mel(7600) - mel(20)) * m / 81); };
    for (int m = 0; m < 80; ++m) {
      const double left = point(m), middle = point(m + 1), right = point(m + 2);
      const double norm = slaney ? 2 / (right - left) : 1;
      for (int k = 0; k < 201; ++k) {
        const double f = 40.0 * k;
        const double want = norm * std::max(0.0, std::min((f - left) / (middle - left),
                                                          (right - f) / (right - middle)));
        ASSERT_NEAR(weight(exact, m, k), want, 1e-7 * norm + 1e-12) << m << " " << k;
        ASSERT_NEAR(weight(as_torchaudio, m, k), want, 5e-5 * norm) << m << " " << k;
      }
    }
  }
}

TEST(MelFilters, OfKaldiAreTrianglesOnTheMelScale) {
  const SparseRows rows = kaldi_mel_filters(23, 512, 16000, 20, 8000);
  const auto mel = [](double f) { return 1127 * std::log(1 + f / 700); };
  const double step = (mel(8000) - mel(20)) / 24;
  for (int m = 0; m < 23; ++m) {
    for (int k = 0; k <= 256; ++k) {
      const double place = (mel(31.25 * k) - mel(20)) / step - m;
      const double want = k == 256 ? 0 : std::max(0.0, std::min(place, 2 - place));
      ASSERT_NEAR(weight(rows, m, k), want, 2e-5) << m << " " << k;
    }
  }
}

TEST(DctRows, AreOrthonormal) {
  const SparseRows rows = dct_rows(40, 128, true);
  for (int a = 0; a < 40; ++a) {
    for (int b = 0; b <= a; ++b) {
      double dot = 0;
      for (int n = 0; n < 128; ++n) dot += weight(rows, a, n) * weight(rows, b, n);
      ASSERT_NEAR(dot, a == b, 1e-6);
    }
  }
  EXPECT_NEAR(weight(dct_rows(3, 4, false), 1, 0), 2 * std::cos(std::numbers::pi / 8), 1e-7);
}

TEST(Windows, EqualTheirDefinitions) {
  for (const int n : {1, 2, 5, 400}) {
    for (const bool periodic : {true, false}) {
      const std::vector<float> hann = window_of(WindowShape::kHann, n, periodic),
                               povey = window_of(WindowShape::kPovey, n, periodic),
                               bartlett = window_of(WindowShape::kBartlett, n, periodic);
      for (int i = 0; i < n; ++i) {
        const double whole = periodic ? n : n - 1;
        const double want = n == 1 ? 1 : 0.5 - 0.5 * std::cos(2 * std::numbers::pi * i / whole);
        EXPECT_NEAR(hann[size_t(i)], want, 1e-7) << n << " " << i;
        EXPECT_NEAR(povey[size_t(i)], std::pow(want, 0.85), 2e-7) << n << " " << i;
        if (n > 1) {
          EXPECT_NEAR(bartlett[size_t(i)], 1 - std::abs(2 * i / whole - 1), 1e-7) << n << " " << i;
        }
      }
    }
  }
  EXPECT_NEAR(window_of(WindowShape::kHamming, 5, false)[0], 0.08, 1e-7);
  EXPECT_NEAR(window_of(WindowShape::kBlackman, 5, false)[1], 0.34, 1e-7);
}

TEST(PaddedSignals, ArePaddedAsInNumpy) {
  const float samples[] = {1, 2, 3, 4};
  const auto padded = [&](SignalEdge edge, int64_t zeros) {
    PaddedSignal signal(samples, 4, edge, zeros);
    const float* const at = signal.stretch(-5, 14 + 2 * zeros, 14 + 2 * zeros);
    return std::vector<float>(at, at + 14 + 2 * zeros);
  };
  using Values = std::vector<float>;
  EXPECT_EQ(padded(SignalEdge::kZeros, 0), (Values{0, 0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0}));
  EXPECT_EQ(padded(SignalEdge::kReflect, 0), (Values{2, 3, 4, 3, 2, 1, 2, 3, 4, 3, 2, 1, 2, 3}));
  EXPECT_EQ(padded(SignalEdge::kSymmetric, 0), (Values{4, 4, 3, 2, 1, 1, 2, 3, 4, 4, 3, 2, 1, 1}));
  EXPECT_EQ(padded(SignalEdge::kReplicate, 0), (Values{1, 1, 1, 1, 1, 1, 2, 3, 4, 4, 4, 4, 4, 4}));
  EXPECT_EQ(padded(SignalEdge::kCircular, 0), (Values{4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1}));
  EXPECT_EQ(padded(SignalEdge::kReflect, 1),
            (Values{0, 4, 3, 2, 1, 0, 1, 2, 3, 4, 0, 4, 3, 2, 1, 0}));
  PaddedSignal inside(samples, 4, SignalEdge::kReflect);
  EXPECT_EQ(inside.stretch(1, 3, 3), samples + 1);
  const float* const cut = inside.stretch(2, 6, 1);
  EXPECT_EQ(cut[0], 3);
  EXPECT_EQ(cut[5], 0);
}

}  // namespace
}  // namespace headrace
