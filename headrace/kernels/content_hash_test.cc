// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/content_hash.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "headrace/kernels/dispatch.h"

namespace headrace {
namespace {

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Expected values come from xxHash's own library.
TEST(ContentHash, EqualsXxh3) {
  EXPECT_EQ(content_hash({}), 0x2d06800538d394c2u);
  EXPECT_EQ(content_hash(bytes_of("abc")), 0x78af5f94892f3950u);
  std::vector<uint8_t> bytes(3000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i % 251);
  EXPECT_EQ(content_hash(bytes), 0x1b846747012c24aau);
}

TEST(ContentHash, IsTheSameAtEverySimdLevel) {
#if defined(__x86_64__)
  if (available_levels().size() < 2) GTEST_SKIP() << "no AVX2 here";
  std::vector<uint8_t> bytes(5000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * i >> 3);
  for (size_t count = 0; count < bytes.size(); count += 1 + count / 7) {
    for (size_t offset : {0, 1, 13}) {
      const uint8_t* from = bytes.data() + offset;
      const size_t n = count > offset ? count - offset : 0;
      for (uint64_t seed : {uint64_t{0}, uint64_t{0x9E3779B97F4A7C15}}) {
        ASSERT_EQ(content_hash_avx2(from, n, seed), content_hash_scalar(from, n, seed)) << count;
      }
    }
  }
#endif
}

TEST(ContentHash, ChangesWithEveryByteAndWithTheLength) {
  std::vector<uint8_t> bytes(1000, 7);
  const uint64_t whole = content_hash(bytes);
  for (uint8_t& byte : bytes) {
    byte ^= 1;
    EXPECT_NE(content_hash(bytes), whole);
    byte ^= 1;
  }
  EXPECT_NE(content_hash(std::span(bytes).first(999)), whole);
}

}  // namespace
}  // namespace headrace
