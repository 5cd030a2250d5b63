// SPDX-License-Identifier: Apache-2.0
// Messages as protobuf's documentation encodes them, and broken ones.
#include "headrace/formats/shards/proto_wire.h"

#include <gtest/gtest.h>

#include <vector>

namespace headrace {
namespace {

// The examples of https://protobuf.dev/programming-guides/encoding/.
TEST(ProtoWire, reads_the_examples_of_the_documentation) {
  const std::vector<uint8_t> number = {0x08, 0x96, 0x01};
  ProtoReader in(number);
  ASSERT_TRUE(in.next());
  EXPECT_EQ(in.field(), 1u);
  EXPECT_TRUE(in.is(ProtoType::kVarint));
  EXPECT_EQ(in.number(), 150u);
  EXPECT_FALSE(in.next());
  EXPECT_TRUE(in.good());

  const std::vector<uint8_t> nested = {0x12, 0x07, 't',  'e',  's',  't',  'i',
                                       'n',  'g',  0x1a, 0x03, 0x08, 0x96, 0x01};
  ProtoReader outer(nested);
  ASSERT_TRUE(outer.next());
  EXPECT_EQ(outer.text(), "testing");
  ASSERT_TRUE(outer.next());
  EXPECT_EQ(outer.field(), 3u);
  EXPECT_EQ(outer.offset(), 9u);
  ProtoReader inner(outer.bytes());
  ASSERT_TRUE(inner.next());
  EXPECT_EQ(inner.number(), 150u);

  const std::vector<uint8_t> packed = {0x32, 0x06, 0x03, 0x8e, 0x02, 0x9e, 0xa7, 0x05};
  ProtoReader list(packed);
  ASSERT_TRUE(list.next());
  VarintReader numbers(list.bytes());
  EXPECT_EQ(numbers.next(), 3u);
  EXPECT_EQ(numbers.next(), 270u);
  EXPECT_EQ(numbers.next(), 86942u);
  EXPECT_TRUE(numbers.at_end() && numbers.good());
}

TEST(ProtoWire, reads_negative_and_fixed_numbers) {
  // -2 as int64; fixed64; fixed32 1.0f
  const std::vector<uint8_t> bytes = {0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                      0xff, 0x01, 0x11, 1,    2,    3,    4,    5,    6,
                                      7,    8,    0x1d, 0,    0,    0x80, 0x3f};
  ProtoReader in(bytes);
  ASSERT_TRUE(in.next());
  EXPECT_EQ(static_cast<int64_t>(in.number()), -2);
  ASSERT_TRUE(in.next());
  EXPECT_EQ(in.number(), 0x0807060504030201u);
  ASSERT_TRUE(in.next());
  EXPECT_EQ(in.number(), 0x3f800000u);
  EXPECT_EQ(in.bytes().size(), 4u);
  EXPECT_FALSE(in.next());
  EXPECT_TRUE(in.good());
}

TEST(ProtoWire, invalid_data_ends_the_iteration) {
  const std::vector<std::vector<uint8_t>> broken = {
      {0x80},                                                              // a truncated tag
      {0x00, 0x01},                                                        // field 0
      {0x0b},                                                              // a group
      {0x0e, 0x00},                                                        // wire type 6
      {0x08},                                                              // no value
      {0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02},  // 65 bits
      {0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x80, 0x01},
      {0x0a, 0x02, 'x'},                                                   // a length past the end
      {0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},  // and of 2^64 - 1
      {0x09, 1, 2, 3, 4, 5, 6, 7},                                         // seven bytes of eight
      {0x0d, 1, 2, 3},
      {0xf8, 0xff, 0xff, 0xff, 0xff, 0x01, 0x00},  // a field number of 33 bits
  };
  for (const std::vector<uint8_t>& bytes : broken) {
    ProtoReader in(bytes);
    EXPECT_FALSE(in.next()) << int(bytes[0]) << " " << bytes.size();
    EXPECT_FALSE(in.good());
    EXPECT_STRNE(in.problem(), "");
    EXPECT_FALSE(in.next());
  }
}

TEST(ProtoWire, every_truncation_inside_a_field_is_detected) {
  const std::vector<uint8_t> whole = {0x08, 0x96, 0x01, 0x12, 0x02, 'h', 'i', 0x1d, 0, 0, 0, 0};
  for (size_t cut = 0; cut <= whole.size(); ++cut) {
    const std::span<const uint8_t> all(whole);
    ProtoReader in(all.first(cut));
    while (in.next()) {
    }
    EXPECT_EQ(in.good(), cut == 0 || cut == 3 || cut == 7 || cut == 12) << cut;
  }
}

}  // namespace
}  // namespace headrace
