// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/byte_stream.h"

#include <gtest/gtest.h>

#include <limits>

namespace headrace {
namespace {

TEST(ByteStream, StoresNumbersLittleEndianWithoutGaps) {
  ByteWriter out;
  out.number(uint8_t{1});
  out.number(uint16_t{0x0203});
  out.number(int32_t{-2});
  out.number(uint64_t{0x0102030405060708});
  out.bytes("ab");
  out.zeros(2);
  const std::vector<uint8_t> expected = {1, 3, 2, 0xFE, 0xFF, 0xFF, 0xFF, 8, 7, 6,
                                         5, 4, 3, 2,    1,    'a',  'b',  0, 0};
  EXPECT_EQ(out.out, expected);
  ByteReader in(out.out);
  EXPECT_EQ(in.number<uint8_t>(), 1);
  EXPECT_EQ(in.number<uint16_t>(), 0x0203);
  EXPECT_EQ(in.number<int32_t>(), -2);
  EXPECT_EQ(in.number<uint64_t>(), 0x0102030405060708u);
  EXPECT_EQ(in.text(2), "ab");
  EXPECT_FALSE(in.at_end());
  EXPECT_EQ(in.bytes(2).size(), 2u);
  EXPECT_TRUE(in.at_end());
}

TEST(ByteStream, AppendsNumbersInNativeByteOrder) {
  const std::vector<uint16_t> numbers = {0x0201, 0x0403};
  const std::span<const uint8_t> bytes = raw_bytes(numbers);
  EXPECT_EQ(std::vector(bytes.begin(), bytes.end()), (std::vector<uint8_t>{1, 2, 3, 4}));
  EXPECT_TRUE(raw_bytes(std::span<const uint64_t>()).empty());
  std::vector<uint16_t> out = {7};
  append_numbers(bytes.first(3), out);  // and no half of one
  append_numbers({}, out);
  append_numbers(bytes, out);
  EXPECT_EQ(out, (std::vector<uint16_t>{7, 0x0201, 0x0201, 0x0403}));
}

TEST(ByteStream, GivesZerosAfterTheFirstMissingItem) {
  const std::vector<uint8_t> bytes = {1, 2, 3, 4, 5};
  for (uint64_t count : {uint64_t{6}, uint64_t{1} << 63, std::numeric_limits<uint64_t>::max()}) {
    ByteReader in(bytes);
    EXPECT_TRUE(in.bytes(count).empty());
    EXPECT_FALSE(in.good());
    EXPECT_EQ(in.number<uint8_t>(), 0);  // although there are bytes
    EXPECT_EQ(in.text(1), "");
    EXPECT_FALSE(in.at_end());
  }
  ByteReader in(bytes);
  EXPECT_EQ(in.number<uint32_t>(), 0x04030201u);
  EXPECT_TRUE(in.good());
  EXPECT_EQ(in.number<uint32_t>(), 0u);
  EXPECT_FALSE(in.good());
}

}  // namespace
}  // namespace headrace
