// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/crc32c.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string_view>
#include <vector>

namespace headrace {
namespace crc32c_test {

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// The polynomial's definition, bit by bit.
uint32_t bit_by_bit(std::span<const uint8_t> bytes) {
  uint32_t crc = ~uint32_t{0};
  for (uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82F63B78u : 0);
  }
  return ~crc;
}

TEST(Crc32c, GivesTheStandardsExamples) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xE3069283u);
  const std::vector<uint8_t> zeros(32, 0), ones(32, 0xFF);
  EXPECT_EQ(crc32c(zeros), 0x8A9136AAu);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(ones), 0x62A8AB43u);
  EXPECT_EQ(crc32c({}), 0u);
}

TEST(Crc32c, IsTheSameAtEveryLengthAndAlignment) {
  std::vector<uint8_t> bytes(5000);
  std::iota(bytes.begin(), bytes.end(), uint8_t{3});
  for (size_t begin : {0, 1, 7, 16}) {
    for (size_t size = 0; begin + size <= bytes.size(); size = size * 5 / 4 + 1) {
      const std::span<const uint8_t> part = std::span(bytes).subspan(begin, size);
      EXPECT_EQ(crc32c(part), bit_by_bit(part)) << begin << " " << size;
    }
  }
}

TEST(Crc32c, ContinuesFromAnEarlierValue) {
  const std::string_view text = "a pack is read by position";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const uint32_t first = crc32c(bytes_of(text.substr(0, cut)));
    EXPECT_EQ(crc32c(bytes_of(text.substr(cut)), first), crc32c(bytes_of(text)));
  }
}

}  // namespace crc32c_test
}  // namespace headrace
