// SPDX-License-Identifier: Apache-2.0
// Compared with the filter's definition in two dimensions; codecs/image/jpeg/decode/rows_test.cc
// compares with libjpeg-turbo itself.
#include "headrace/kernels/jpeg/upsample.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/level_test_names.h"

namespace headrace {
namespace {

// The bytes around a row that kernels may touch.
constexpr int kInFront = 64, kBehind = 128;

class Upsample : public testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override { set_simd_level(GetParam()); }
  void TearDown() override { set_simd_level(available_levels().back()); }

  // A row of `count` samples on the heap, with exactly as much memory around it as a kernel may
  // read. Extreme samples are frequent, so that sums reach their limits.
  std::vector<uint8_t> row(int count) {
    std::vector<uint8_t> samples(kInFront + count + kBehind);
    for (uint8_t& sample : samples) {
      const unsigned value = engine_();
      sample = static_cast<uint8_t>(value % 4 == 0 ? 0 : value % 4 == 1 ? 255 : value >> 8);
    }
    return samples;
  }
  static std::vector<uint8_t> output(int count) { return std::vector<uint8_t>(count + kBehind); }

 private:
  std::mt19937 engine_{3};
};

constexpr int kMaxSamples = 300;

TEST_P(Upsample, H2V1WeightsTheNearerSampleThreeTimes) {
  for (int count = 1; count <= kMaxSamples; ++count) {
    const std::vector<uint8_t> in = row(count);
    const uint8_t* const x = in.data() + kInFront;
    std::vector<uint8_t> out = output(2 * count);
    upsample_h2v1(x, count, out.data());
    for (int i = 0; i < 2 * count; ++i) {
      const int here = i / 2, aside = i % 2 ? here + 1 : here - 1, round = i % 2 ? 2 : 1;
      ASSERT_EQ(out[i], (3 * x[here] + x[aside] + round) / 4) << i << " of " << count;
    }
  }
}

TEST_P(Upsample, H2V2WeightsTheFourNearestSamples9To3To3To1) {
  for (int count = 1; count <= kMaxSamples; ++count) {
    const std::vector<uint8_t> in0 = row(count), in1 = row(count);
    const uint8_t *const near = in0.data() + kInFront, *const far = in1.data() + kInFront;
    std::vector<uint8_t> out = output(2 * count);
    upsample_h2v2(near, far, count, out.data());
    for (int i = 0; i < 2 * count; ++i) {
      const int here = i / 2, aside = i % 2 ? here + 1 : here - 1, round = i % 2 ? 7 : 8;
      const int sum = 9 * near[here] + 3 * near[aside] + 3 * far[here] + far[aside];
      ASSERT_EQ(out[i], (sum + round) / 16) << i << " of " << count;
    }
  }
}

TEST_P(Upsample, H1V2RoundsTheUpperRowDownAndTheLowerUp) {
  for (int count = 1; count <= kMaxSamples; ++count) {
    const std::vector<uint8_t> in0 = row(count), in1 = row(count);
    const uint8_t *const near = in0.data() + kInFront, *const far = in1.data() + kInFront;
    for (const bool lower : {false, true}) {
      std::vector<uint8_t> out = output(count);
      upsample_h1v2(near, far, lower, count, out.data());
      for (int i = 0; i < count; ++i) {
        ASSERT_EQ(out[i], (3 * near[i] + far[i] + (lower ? 2 : 1)) / 4) << i << " of " << count;
      }
    }
  }
}

TEST_P(Upsample, RepeatDuplicatesEachSample) {
  for (int count = 1; count <= kMaxSamples; ++count) {
    const std::vector<uint8_t> in = row(count);
    for (int times = 2; times <= 4; ++times) {
      std::vector<uint8_t> out = output(times * count);
      upsample_repeat(in.data() + kInFront, count, times, out.data());
      for (int i = 0; i < times * count; ++i) ASSERT_EQ(out[i], in[kInFront + i / times]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, Upsample, testing::ValuesIn(available_levels()), level_name);

}  // namespace
}  // namespace headrace
