// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/codecs/video/nal.h"

namespace headrace {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes bytes_of(std::string_view hex) {
  Bytes out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    out.push_back(static_cast<uint8_t>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return out;
}

// As written by x264.
const Bytes kInterlaced = bytes_of(
    "01640015ffe1001767640015acd9454d0800000300080000030190f8a14cb001000668fba3cb22c0fdf8f800");
const Bytes kFakeInterlaced = bytes_of(
    "01640015ffe1001767640015acd94545080000030008000003019078b16cb001000668ebe3cb22c0fdf8f800");
const Bytes kProgressive = bytes_of(
    "0164000affe100176764000aacd9452684000003000400000300c83c48965801000668ebe3cb22c0fdf8f800");
const Bytes kBaseline =
    bytes_of("0142c00affe100166742c00ad9052684000003000400000300c83c48992001000568cb83cb20");
const Bytes kColorPlanes = bytes_of(
    "01f4000affe1001667f4000a919b28a4d0800000030080000019078912cb01000868ebe3c44c000440fff8f800");

// A High profile set with scaling lists (two of differences, then the default), from the bits of
// 7.3.2.1.1.
Bytes with_scales(bool frames_only) {
  std::string bits = "1";  // seq_parameter_set_id 0
  bits +=
      "010"
      "1"
      "1"
      "0";                                   // 4:2:0, 8 bits
  bits += "1";                               // lists
  bits += "1" + std::string(15, '1') + "1";  // 16 differences of 0
  bits +=
      "1"
      "000010001";   // -8: the default follows
  bits += "000000";  // six absent lists
  bits +=
      "1"
      "1"
      "1"
      "010"
      "0"
      "00100"
      "00100";  // ..., one reference picture, 4 x 4 blocks
  bits += frames_only ? "1" : "0";
  bits += "1000000000000000";
  Bytes unit{0x67, 100, 0, 10};
  for (size_t i = 0; i + 8 <= bits.size(); i += 8) {
    unit.push_back(static_cast<uint8_t>(std::stoi(bits.substr(i, 8), nullptr, 2)));
  }
  Bytes out{1, 100, 0, 10, 0xFF, 0xE1, 0, static_cast<uint8_t>(unit.size())};
  out.insert(out.end(), unit.begin(), unit.end());
  return out;
}

TEST(H264Sequences, ReportWhetherTheyMayHoldFields) {
  for (const Bytes& each : {kInterlaced, kFakeInterlaced}) EXPECT_TRUE(may_hold_h264_fields(each));
  for (const Bytes& each : {kProgressive, kBaseline, kColorPlanes}) {
    EXPECT_FALSE(may_hold_h264_fields(each));
  }
  EXPECT_TRUE(may_hold_h264_fields(with_scales(false)));
  EXPECT_FALSE(may_hold_h264_fields(with_scales(true)));
}

TEST(H264Sequences, WithoutThatInformationMayHoldFields) {
  EXPECT_TRUE(may_hold_h264_fields({}));
  for (size_t size = 0; size < 20; ++size) {
    EXPECT_TRUE(may_hold_h264_fields(std::span(kProgressive).first(size)));
  }
  Bytes none = kProgressive;
  none[5] = 0xE0;
  EXPECT_TRUE(may_hold_h264_fields(none));
}

TEST(H264Sequences, DescribeTheSlices) {
  // first_mb_in_slice 0, slice_type 7, set 0, frame_num of four bits; then the flag.
  const Bytes field{0, 0, 0, 4, 0x65, 0b1000'1000, 0b1000'0100, 0};
  const Bytes frame{0, 0, 0, 4, 0x65, 0b1000'1000, 0b1000'0000, 0};
  EXPECT_TRUE(is_h264_field(with_scales(false), field));
  EXPECT_FALSE(is_h264_field(with_scales(false), frame));
  EXPECT_FALSE(is_h264_field(with_scales(true), field));
  EXPECT_FALSE(is_h264_field(with_scales(false), {}));
}

TEST(H264Sequences, SurviveAnyBytes) {
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    Bytes bytes = i % 2 ? kColorPlanes : with_scales(true);
    for (int k = 0; k < 3; ++k) bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    bytes.resize(random() % (bytes.size() + 1));
    may_hold_h264_fields(bytes);
    const Bytes& set = i % 3 ? kInterlaced : bytes;
    is_h264_field(set, bytes);
  }
}

}  // namespace
}  // namespace headrace
