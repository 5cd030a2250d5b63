// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/non_temporal_copy.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace headrace {
namespace {

TEST(NonTemporalCopy, WritesExactlyWhatMemcpyDoes) {
  std::vector<uint8_t> in(700);
  for (size_t i = 0; i < in.size(); ++i) in[i] = uint8_t(i * 7 + i / 256);
  for (size_t from = 0; from < 64; from += 7) {
    for (size_t to = 0; to < 64; to += 3) {
      for (const size_t bytes : {0u, 1u, 15u, 63u, 64u, 65u, 128u, 300u, 511u}) {
        std::vector<uint8_t> out(700, 0xAB), expected = out;
        copy_non_temporal(out.data() + to, in.data() + from, bytes);
        if (bytes > 0) std::memcpy(expected.data() + to, in.data() + from, bytes);
        ASSERT_EQ(out, expected) << from << " -> " << to << ", " << bytes << " bytes";
      }
    }
  }
}

}  // namespace
}  // namespace headrace
