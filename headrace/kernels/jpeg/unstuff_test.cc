// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/jpeg/huffman.h"
#include "headrace/kernels/level_test_names.h"

namespace headrace {
namespace {

class Unstuff : public testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override { set_simd_level(GetParam()); }
  void TearDown() override { set_simd_level(available_levels().back()); }

  // Checks against B.1.1.5: a zero after 0xff is stuffing, anything else after it is a marker.
  // Input and output are heap blocks of exactly the documented size.
  void check(const std::vector<uint8_t>& in) {
    std::vector<uint8_t> data;
    size_t read = 0;
    while (read < in.size()) {
      if (in[read] == 0xff) {
        if (read + 1 == in.size() || in[read + 1] != 0) break;
        data.push_back(0xff);
        read += 2;
      } else {
        data.push_back(in[read++]);
      }
    }
    const std::unique_ptr<uint8_t[]> from(new uint8_t[in.size()]);
    const std::unique_ptr<uint8_t[]> out(new uint8_t[in.size() + 64]);
    std::copy(in.begin(), in.end(), from.get());
    const Unstuffed result = unstuff({from.get(), in.size()}, out.get());
    ASSERT_EQ(result.read, read);
    ASSERT_EQ(result.written, data.size());
    ASSERT_TRUE(std::equal(data.begin(), data.end(), out.get()));
  }
};

TEST_P(Unstuff, RemovesStuffedZerosAndStopsAtMarkers) {
  std::mt19937 engine(1);
  for (int round = 0; round < 3000; ++round) {
    std::vector<uint8_t> in(engine() % 400);
    const unsigned marks = engine() % 40 + 2, zeros = engine() % 4;
    for (size_t i = 0; i < in.size(); ++i) {
      const bool behind_mark = i > 0 && in[i - 1] == 0xff;
      in[i] = static_cast<uint8_t>(engine());
      if (engine() % marks == 0) in[i] = 0xff;
      if (behind_mark && (zeros > 0 || engine() % 8)) in[i] = 0;
    }
    check(in);
    if (HasFatalFailure()) return;
  }
}

TEST_P(Unstuff, FindsAMarkerAtEveryPosition) {
  for (size_t size = 0; size < 200; ++size) {
    check(std::vector<uint8_t>(size, 0x12));
    for (size_t at = 0; at < size; ++at) {
      std::vector<uint8_t> in(size, 0x12);
      in[at] = 0xff;
      check(in);
      if (at + 1 < size) {
        in[at + 1] = 0;
        check(in);
        in[at + 1] = 0xff;
        check(in);
      }
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, Unstuff, testing::ValuesIn(available_levels()), level_name);

}  // namespace
}  // namespace headrace
