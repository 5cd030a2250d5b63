// SPDX-License-Identifier: Apache-2.0
// Compared with definitions in float64, and each SIMD level with the scalar one, bit for bit.
#include "headrace/kernels/audio/frame_kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/level_test_names.h"

namespace headrace {
namespace {

using Row = std::vector<float>;

Row noise(size_t count, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> value(-1, 1);
  Row row(count);
  for (float& v : row) v = value(random);
  return row;
}

// Power spectra of the frames of `samples`, one row per frame, at the active SIMD level.
std::vector<Row> spectra(const RealFft& fft, const Row& samples, int frames, int64_t hop) {
  const FrameKernels& kernels = frame_kernels();
  const auto lanes = size_t(kernels.lanes);
  Row block(size_t(fft.room()) * lanes), other(block);
  std::vector<Row> out;
  for (int first = 0; first < frames; first += kernels.lanes) {
    Row part(size_t(kernels.lanes - 1) * size_t(hop) + size_t(fft.length) + 3);
    const size_t begin = size_t(first) * size_t(hop);
    std::copy_n(samples.begin() + ptrdiff_t(begin), std::min(part.size(), samples.size() - begin),
                part.begin());
    kernels.gather(part.data(), hop, fft.length, nullptr, block.data(), kernels.lanes);
    const float* const powers = kernels.powers(fft, block.data(), other.data());
    for (int l = 0; l < kernels.lanes && first + l < frames; ++l) {
      Row& row = out.emplace_back();
      for (int k = 0; k < fft.bins(); ++k) row.push_back(powers[size_t(k) * lanes + size_t(l)]);
    }
  }
  return out;
}

class FrameKernelLevels : public testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override { set_simd_level(GetParam()); }
  void TearDown() override { set_simd_level(available_levels().back()); }
  template <class Make>
  auto as_scalar(Make&& make) {
    set_simd_level(SimdLevel::kScalar);
    auto made = make();
    set_simd_level(GetParam());
    return made;
  }
};

TEST_P(FrameKernelLevels, PowersEqualTheDefinition) {
  for (const int n :
       {1,   2,   3,   4,   5,   6,   7,   8,   9,   10,  11,   12,   13,   14,  15,  16,
        20,  22,  24,  25,  27,  30,  49,  64,  77,  98,  100,  120,  121,  125, 150, 169,
        200, 240, 256, 320, 400, 401, 480, 509, 512, 600, 1000, 1024, 1102, 2048}) {
    const int frames = 19, hop = n / 3 + 1;
    const Row samples = noise(size_t(hop) * frames + size_t(n) + 3, uint32_t(n));
    const RealFft fft(n);
    const std::vector<Row> made = spectra(fft, samples, frames, hop);
    for (int f = 0; f < frames; f += 6) {
      double largest = 0, worst = 0;
      for (int k = 0; k < fft.bins(); ++k) {
        std::complex<double> sum = 0;
        for (int j = 0; j < n; ++j) {
          const double angle = -2 * std::numbers::pi * double(int64_t{j} * k % n) / n;
          sum += double(samples[size_t(f * hop + j)]) * std::polar(1.0, angle);
        }
        largest = std::max(largest, std::norm(sum));
        worst = std::max(worst, std::abs(made[size_t(f)][size_t(k)] - std::norm(sum)));
      }
      // Large prime lengths give long sums.
      const bool prime = n == 401 || n == 509 || n == 1102;
      EXPECT_LE(worst, largest * (prime ? 1.5e-6 : 5e-7)) << n << " frame " << f;
    }
    EXPECT_EQ(as_scalar([&] { return spectra(fft, samples, frames, hop); }), made) << n;
  }
}

TEST(Turns, AreSinesAndCosines) {
  for (const int n : {1, 2, 3, 4, 5, 7, 8, 12, 16, 100, 401, 4096}) {
    for (int k = 0; k < n; ++k) {
      const double angle = 2 * std::numbers::pi * k / n;
      EXPECT_NEAR(unit_root(k, n).cosine, std::cos(angle), 3e-16 * 4) << k << " of " << n;
      EXPECT_NEAR(unit_root(k, n).sine, std::sin(angle), 3e-16 * 4) << k << " of " << n;
    }
  }
  EXPECT_EQ(unit_root(1, 4).cosine, 0);
  EXPECT_EQ(unit_root(1, 2).sine, 0);
}

TEST_P(FrameKernelLevels, BlocksAreGatheredAndScattered) {
  const FrameKernels& kernels = frame_kernels();
  const auto lanes = size_t(kernels.lanes);
  for (const int length : {1, 2, 3, 4, 5, 17, 64}) {
    for (const int64_t hop : {1, 3, 50}) {
      const Row samples = noise(lanes * size_t(hop) + size_t(length) + 3), weights = noise(64, 2);
      const size_t stride = lanes + (hop == 3 ? lanes : 0);
      Row block(stride * size_t(length), -7.0f);
      kernels.gather(samples.data(), hop, length, weights.data(), block.data(), int64_t(stride));
      for (size_t l = 0; l < lanes; ++l) {
        for (size_t j = 0; j < size_t(length); ++j) {
          const float sample = samples[l * size_t(hop) + j];
          ASSERT_EQ(block[j * stride + l], sample * weights[j]) << length << " " << hop;
        }
      }
    }
    const auto hop = size_t(length);
    for (int frames = 1; frames <= kernels.lanes; ++frames) {
      const size_t stride = lanes * (frames % 2 ? 3 : 1);
      const Row block = noise(stride * size_t(length), 3);
      Row out(size_t(frames) * hop + 4, -7.0f);
      kernels.scatter(block.data(), int64_t(stride), length, frames, int64_t(hop), out.data());
      for (size_t i = 0; i < size_t(frames) * hop; ++i) {
        ASSERT_EQ(out[i], block[i % hop * stride + i / hop]) << length << " " << frames;
      }
      for (size_t i = size_t(frames) * hop; i < out.size(); ++i) ASSERT_EQ(out[i], -7.0f);
    }
  }
}

TEST_P(FrameKernelLevels, RowsAreWeightedInOneOrder) {
  SparseRows rows;
  rows.add(3, Row{0, 0, 0.5f, 0, -2, 0});
  rows.add(0, Row{0, 0, 0});
  rows.add(1, noise(23, 5));
  EXPECT_EQ(rows.rows()[0].first, 5);
  EXPECT_EQ(rows.rows()[0].count, 3);
  for (const int count : {1, 3, 8, 16, 21, 40, 64, 75, 150}) {
    const size_t stride = 166;
    const Row in = noise(30 * stride, 6);
    Row out(3 * size_t(count) + 5, -7.0f);
    frame_kernels().weigh(rows, in.data(), stride, count, out.data(), count);
    for (size_t m = 0; m < 3; ++m) {
      const SparseRows::Row& row = rows.rows()[m];
      for (size_t i = 0; i < size_t(count); ++i) {
        float sums[2] = {0, 0};
        for (int k = 0; k < row.count; ++k) {
          volatile const float value =
              in[size_t(row.first + k) * stride + i] * rows.weights()[row.weights + size_t(k)];
          sums[k % 2] += value;
        }
        ASSERT_EQ(out[m * size_t(count) + i], sums[0] + sums[1]) << count << " " << m << " " << i;
      }
    }
    for (size_t i = 3 * size_t(count); i < out.size(); ++i) ASSERT_EQ(out[i], -7.0f);
  }
}

TEST_P(FrameKernelLevels, FramesAreConditionedAsKaldiDoes) {
  const FrameKernels& kernels = frame_kernels();
  const auto lanes = size_t(kernels.lanes), length = size_t{400};
  const Row samples = noise(length * lanes, 7), weights = noise(length, 8);
  Row block(length * lanes), raw(lanes), energies(lanes);
  for (size_t l = 0; l < lanes; ++l) {
    for (size_t j = 0; j < length; ++j) block[j * lanes + l] = samples[l * length + j] + 0.3f;
  }
  kernels.condition({.remove_mean = true, .preemphasis = 0.97f}, weights.data(), int(length),
                    raw.data(), energies.data(), block.data());
  for (size_t l = 0; l < lanes; ++l) {
    const auto sample = [&](size_t j) { return double(samples[l * length + j] + 0.3f); };
    double mean = 0, energy = 0;
    for (size_t j = 0; j < length; ++j) mean += sample(j) / double(length);
    for (size_t j = 0; j < length; ++j) energy += std::pow(sample(j) - mean, 2);
    EXPECT_NEAR(raw[l], energy, energy * 1e-6);
    energy = 0;
    for (size_t j = 0; j < length; ++j) {
      const double before = sample(j ? j - 1 : 0) - mean;
      EXPECT_NEAR(block[j * lanes + l], (sample(j) - mean - 0.97 * before) * weights[j], 1e-6);
      energy += std::pow((sample(j) - mean - 0.97 * before) * double(weights[j]), 2);
    }
    EXPECT_NEAR(energies[l], energy, energy * 1e-6);
  }
}

// Allowed error against float64, in units in the last place.
double steps_off(float made, double want) {
  const double step = std::abs(double(std::nextafter(float(want), INFINITY)) - double(float(want)));
  return std::abs(double(made) - want) / step;
}

// Every 61st float from the smallest normal one to the largest: 35 million.
TEST_P(FrameKernelLevels, LogarithmsAreWithinThreeUnitsInTheLastPlace) {
  const FrameKernels& kernels = frame_kernels();
  const int stride = GetParam() == available_levels().back() ? 61 : 601;
  constexpr size_t kChunk = 4096;
  Row in, decibels(kChunk), logs(kChunk);
  double worst_log10 = 0, worst_log = 0;
  const auto look = [&] {
    kernels.decibels(in.data(), int64_t(in.size()), {.multiplier = 1, .least = 1e-37f},
                     decibels.data());
    kernels.logarithms(in.data(), int64_t(in.size()), 1e-37f, logs.data());
    for (size_t i = 0; i < in.size(); ++i) {
      if (in[i] < 1e-37f) continue;
      worst_log10 = std::max(worst_log10, steps_off(decibels[i], std::log10(double(in[i]))));
      worst_log = std::max(worst_log, steps_off(logs[i], std::log(double(in[i]))));
    }
    in.clear();
  };
  for (uint32_t bits = 0x00800000; bits < 0x7f800000; bits += uint32_t(stride)) {
    in.push_back(std::bit_cast<float>(bits));
    if (in.size() == kChunk) look();
  }
  look();
  EXPECT_LE(worst_log10, 3);
  EXPECT_LE(worst_log, 3);
}

TEST_P(FrameKernelLevels, RowsOfValuesKeepNans) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  for (const size_t count : {1u, 7u, 8u, 17u, 33u}) {
    Row in = noise(count, uint32_t(count));
    in[count / 2] = nan;
    if (count > 2) in[0] = infinity, in[1] = 1e-20f;
    Row out(count + 1, -7.0f);
    frame_kernels().decibels(in.data(), int64_t(count), {.subtracted = 5}, out.data());
    EXPECT_TRUE(std::isnan(out[count / 2]));
    EXPECT_EQ(out[count], -7.0f);
    if (count > 2) {
      EXPECT_EQ(out[0], infinity);
      EXPECT_NEAR(out[1], -105, 1e-4);
    }
    frame_kernels().logarithms(in.data(), int64_t(count), 0.5f, out.data());
    EXPECT_TRUE(std::isnan(out[count / 2]));
    Row squares(count);
    for (size_t i = 0; i < count; ++i) squares[i] = in[i] * in[i];
    frame_kernels().roots(squares.data(), int64_t(count), out.data());
    for (size_t i = 0; i < count; ++i) {
      if (i == count / 2) continue;
      EXPECT_EQ(out[i], std::sqrt(squares[i]));
    }
    EXPECT_EQ(out[count], -7.0f);
    in[0] = 3.5f;
    in[count / 2] = nan;
    const float most = frame_kernels().largest(in.data(), int64_t(count));
    EXPECT_EQ(most, count == 1 ? -infinity : 3.5f);
    frame_kernels().raise(in.data(), int64_t(count), 0.25f, 4, 0.25f, out.data());
    for (size_t i = 0; i < count; ++i) {
      if (i == count / 2) continue;
      EXPECT_EQ(out[i], (std::max(in[i], 0.25f) + 4) / 4);
    }
    EXPECT_TRUE(std::isnan(out[count / 2]));
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, FrameKernelLevels, testing::ValuesIn(available_levels()),
                         level_name);

}  // namespace
}  // namespace headrace
