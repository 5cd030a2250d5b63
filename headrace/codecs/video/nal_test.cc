// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/nal.h"

#include <gtest/gtest.h>

#include <random>
#include <string_view>
#include <vector>

#include "headrace/codecs/video/nal_test_units.h"

namespace headrace {
namespace {

using namespace nal_test;

NalFraming h264(int length_bytes = 4) {
  const Bytes avcc = avcc_of(length_bytes);
  return nal_framing(VideoCodec::kH264, avcc).value();
}
NalFraming hevc(int sub_layers) {
  return nal_framing(VideoCodec::kHEVC, hvcc_of(sub_layers)).value();
}

TEST(NalUnits, AreFramedAsTheParametersSay) {
  for (const int length : {1, 2, 4}) {
    EXPECT_EQ(h264(length).length_bytes, length);
    EXPECT_TRUE(begins_decoding(h264(length), packet_of({kIdr}, length)));
    EXPECT_FALSE(begins_decoding(h264(length), packet_of({kReference}, length)));
  }
  EXPECT_FALSE(nal_framing(VideoCodec::kH264, avcc_of(3)));
  EXPECT_FALSE(nal_framing(VideoCodec::kH264, Bytes{0, 0, 0, 1, 0x67, 1, 2, 3}));
  EXPECT_FALSE(nal_framing(VideoCodec::kHEVC, Bytes(22, 1)));
  EXPECT_FALSE(nal_framing(VideoCodec::kVP9, avcc_of(4)));
  EXPECT_EQ(hevc(3).highest_layer, 2);
}

// 00 00 01 xx before a unit is a length, not a start code.
TEST(NalUnits, MayHaveTheLengthOfAStartCode) {
  for (size_t size = 255; size <= 515; ++size) {
    Bytes reference = kReference, other = kOther;
    reference.resize(size, 0x41);
    other.resize(size, 0x01);
    EXPECT_FALSE(is_droppable(h264(), packet_of({reference}))) << size;
    EXPECT_TRUE(is_droppable(h264(), packet_of({other}))) << size;
    EXPECT_FALSE(is_droppable(h264(), packet_of({other, reference}))) << size;
  }
}

TEST(H264Packet, BeginsDecodingWithAnIdrImageOrWhereItRecoversExactly) {
  const NalFraming framing = h264();
  EXPECT_TRUE(begins_decoding(framing, packet_of({kParameterSet, kIdr})));
  EXPECT_TRUE(is_idr(framing, packet_of({kParameterSet, kIdr})));
  EXPECT_FALSE(is_idr(framing, packet_of({sei(6, {0xC4}), kReference})));
  EXPECT_FALSE(is_idr(framing, packet_of({kParameterSet})));
  EXPECT_FALSE(begins_decoding(framing, packet_of({kParameterSet, kReference})));
  EXPECT_TRUE(begins_decoding(framing, packet_of({sei(6, {0xC4}), kReference})));
  EXPECT_FALSE(begins_decoding(framing, packet_of({sei(6, {0x44}), kReference})));  // in a frame
  EXPECT_FALSE(begins_decoding(framing, packet_of({sei(6, {0x84}), kReference})));  // not exactly
  EXPECT_FALSE(begins_decoding(framing, packet_of({sei(1, {0xC4}), kReference})));
  EXPECT_FALSE(begins_decoding(framing, packet_of({kReference, sei(6, {0xC4})})));
  EXPECT_FALSE(begins_decoding(framing, packet_of({sei(6, {})})));
  EXPECT_FALSE(begins_decoding(framing, {}));
  // After a message that is longer than 255 bytes, and has emulation prevention bytes.
  Bytes both = sei(5, Bytes(300, 0));
  both.pop_back();
  both = both + Bytes{6, 1, 0xC4, 0x80};
  EXPECT_TRUE(begins_decoding(framing, packet_of({both, kReference})));
}

TEST(H264Packet, CanBeDroppedIfNoSliceIsAReference) {
  const NalFraming framing = h264();
  EXPECT_TRUE(is_droppable(framing, packet_of({kOther})));
  EXPECT_TRUE(is_droppable(framing, packet_of({{0x09, 0xF0}, sei(5, {1, 2}), kOther, kOther})));
  EXPECT_FALSE(is_droppable(framing, packet_of({kOther, kReference})));
  EXPECT_FALSE(is_droppable(framing, packet_of({kIdr})));
  EXPECT_FALSE(is_droppable(framing, packet_of({kParameterSet})));
  // other pictures may reference it
  EXPECT_FALSE(is_droppable(framing, packet_of({kParameterSet, kOther})));
  EXPECT_FALSE(is_droppable(framing, {}));
  Bytes cut = packet_of({kOther, kOther});
  cut.pop_back();
  EXPECT_FALSE(is_droppable(framing, cut));
  EXPECT_FALSE(is_droppable(framing, packet_of({kOther, {}})));
}

TEST(HevcPacket, BeginsDecodingWithARandomAccessImage) {
  for (int type = 0; type < 32; ++type) {
    EXPECT_EQ(begins_decoding(hevc(1), packet_of({hevc_unit(32), hevc_unit(type)})),
              type >= 16 && type <= 21)
        << type;
  }
}

TEST(HevcPacket, CanBeDroppedInTheHighestLayerOnly) {
  for (int type = 0; type < 32; ++type) {
    const bool even = type <= 14 && type % 2 == 0;
    EXPECT_EQ(is_droppable(hevc(1), packet_of({hevc_unit(type)})), even) << type;
    EXPECT_FALSE(is_droppable(hevc(2), packet_of({hevc_unit(type)})));
    EXPECT_EQ(is_droppable(hevc(2), packet_of({hevc_unit(type, 1)})), even);
    EXPECT_FALSE(is_droppable(hevc(2), packet_of({hevc_unit(type, 1), hevc_unit(1, 1)})));
  }
  const NalFraming unknown = nal_framing(VideoCodec::kHEVC, Bytes(23, 0xFF)).value();
  EXPECT_FALSE(is_droppable(unknown, packet_of({hevc_unit(0)})));
  for (const int set : {32, 33, 34}) {
    EXPECT_FALSE(is_droppable(hevc(1), packet_of({hevc_unit(set), hevc_unit(0)}))) << set;
  }
}

TEST(H264Packet, SaysWhichBuildOfX264MadeIt) {
  const auto build_of = [](std::string_view says) {
    return x264_build(h264(), packet_of({x264_sei(says), kIdr}));
  };
  EXPECT_EQ(build_of("x264 - core 120 r2164 da19765 - H.264/MPEG-4 AVC codec"), 120);
  EXPECT_EQ(build_of("x264 - core 164"), 164);
  EXPECT_EQ(build_of("x265 - core 164"), std::nullopt);
  EXPECT_EQ(build_of(""), std::nullopt);
  EXPECT_EQ(x264_build(h264(), packet_of({kIdr})), std::nullopt);
}

TEST(NalPacket, OfAnyBytesIsParsedWithinItsBounds) {
  std::mt19937 random(1);
  const NalFraming framings[] = {h264(1), h264(2), h264(4), hevc(1), hevc(2)};
  for (int i = 0; i < 20000; ++i) {
    Bytes bytes(random() % 40);
    for (uint8_t& byte : bytes) {
      constexpr uint8_t kLikely[] = {0, 0, 1, 3, 5, 6, 255, 0x26};
      byte = random() % 4 ? kLikely[random() % 8] : static_cast<uint8_t>(random());
    }
    for (const NalFraming& framing : framings) {
      begins_decoding(framing, bytes);
      is_droppable(framing, bytes);
      x264_build(framing, bytes);
    }
    nal_framing(VideoCodec::kH264, bytes);
    nal_framing(VideoCodec::kHEVC, bytes);
  }
}

}  // namespace
}  // namespace headrace
