// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/rows.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/level_test_names.h"

namespace headrace {
namespace {

class Rows : public testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override { set_simd_level(GetParam()); }
  void TearDown() override { set_simd_level(available_levels().back()); }

  // Exactly `count` bytes on the heap, so that a sanitizer detects reads past them.
  std::vector<uint8_t> random_bytes(size_t count) {
    std::vector<uint8_t> bytes(count);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(engine_());
    return bytes;
  }

 private:
  std::mt19937 engine_{5};
};

TEST_P(Rows, DeinterleaveGivesEachChannelItsSamples) {
  for (int channels = 1; channels <= 4; ++channels) {
    for (int count = 1; count < 300; count += count < 140 ? 1 : 37) {
      const std::vector<uint8_t> in = random_bytes(size_t(count) * channels);
      std::vector<std::vector<uint8_t>> planes(4, std::vector<uint8_t>(count + 63, 0));
      uint8_t* const out[] = {planes[0].data(), planes[1].data(), planes[2].data(),
                              planes[3].data()};
      deinterleave_row(in.data(), channels, count, out);
      for (int c = 0; c < channels; ++c) {
        for (int i = 0; i < count; ++i) ASSERT_EQ(planes[c][i], in[i * channels + c]);
      }
    }
  }
}

TEST_P(Rows, MirrorReversesARow) {
  for (int count = 1; count < 300; ++count) {
    const std::vector<uint8_t> in = random_bytes(count);
    std::vector<uint8_t> out(count);
    mirror_row(in.data(), count, out.data());
    ASSERT_EQ(out, std::vector<uint8_t>(in.rbegin(), in.rend()));
  }
}

TEST_P(Rows, TransposeSwapsTheAxes) {
  for (const auto& [width, height] :
       {std::pair{1, 1}, {5, 3}, {16, 16}, {17, 40}, {31, 24}, {100, 1}}) {
    const std::vector<uint8_t> in = random_bytes(size_t(width) * height);
    std::vector<uint8_t> out(in.size());
    transpose_plane(in.data(), width, width, height, out.data(), height);
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) ASSERT_EQ(out[x * height + y], in[y * width + x]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, Rows, testing::ValuesIn(available_levels()), level_name);

}  // namespace
}  // namespace headrace
