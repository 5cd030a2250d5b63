// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/mpeg4_pictures.h"

#include <gtest/gtest.h>

#include <random>
#include <string_view>

#include "headrace/codecs/video/avi_test_chunks.h"

namespace headrace {
namespace {

using namespace avi_test;

Mpeg4Layer layer_of(const Bytes& bytes) {
  Mpeg4Layer layer;
  layer.learn(bytes);
  return layer;
}

TEST(Mpeg4Pictures, AreFoundByTheirStartCodesWithTheirType) {
  const Bytes bytes = kLayer + Bytes{0, 0, 1, 0xB3, 0, 16, 7} + picture('I') + picture('B') +
                      picture('S') + picture('P');
  size_t from = 0;
  for (const Mpeg4Kind kind :
       {Mpeg4Kind::kIntra, Mpeg4Kind::kBetween, Mpeg4Kind::kSprite, Mpeg4Kind::kForward}) {
    const auto found = next_mpeg4_picture(bytes, from);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->kind, kind);
    from = found->at + 4;
  }
  EXPECT_FALSE(next_mpeg4_picture(bytes, from));
  EXPECT_FALSE(next_mpeg4_picture(Bytes{0, 0, 1, 0xB6}));
  EXPECT_FALSE(next_mpeg4_picture(Bytes{}));
}

TEST(Mpeg4Parameters, AreTheHeadersBeforeFramesAndGroups) {
  const Bytes said = user_data("Lavc58");
  EXPECT_EQ(mpeg4_parameters(kLayer + said + picture('I')).size(), kLayer.size() + said.size());
  EXPECT_EQ(mpeg4_parameters(kLayer + Bytes{0, 0, 1, 0xB3, 0} + picture('I')).size(),
            kLayer.size());
  EXPECT_EQ(mpeg4_parameters(picture('I')).size(), 0u);
}

TEST(Mpeg4Layer, HasTheNumberOfBitsOfATime) {
  EXPECT_EQ(layer_of(kLayer).time_bits, 5);
  // headers in the packet itself come first
  EXPECT_EQ(layer_of(picture('I') + kLayer).time_bits, 0);
  EXPECT_EQ(layer_of(Bytes{0, 0, 1, 0x20, 0}).time_bits, 0);
}

TEST(Mpeg4Layer, ReportsWhetherItsFramesHoldFields) {
  for (const Bytes& fields : {kFields, kFieldsAtFixedRate}) {
    EXPECT_TRUE(layer_of(fields).interlaced);
    EXPECT_EQ(layer_of(fields).time_bits, 5);
    EXPECT_FALSE(layer_of({fields.begin(), fields.end() - 4}).interlaced);  // cut off
  }
  EXPECT_FALSE(layer_of(kNoFields).interlaced);
  EXPECT_FALSE(layer_of(kLayer).interlaced);
}

TEST(Mpeg4Layer, RecognizesEmptyFrames) {
  const Mpeg4Layer layer = layer_of(kLayer);
  const Bytes full = picture('P'), empty = picture('P', false);
  EXPECT_FALSE(layer.is_empty(*next_mpeg4_picture(full)));
  EXPECT_TRUE(layer.is_empty(*next_mpeg4_picture(empty)));
  EXPECT_FALSE(Mpeg4Layer().is_empty(*next_mpeg4_picture(empty)));
  const Bytes endless{0, 0, 1, 0xB6, 0x7F, 0xFF, 0xFF};
  EXPECT_FALSE(layer.is_empty(*next_mpeg4_picture(endless)));
}

TEST(Mpeg4UserData, NamesTheEncoderAndPackedFrames) {
  const auto packs = [](std::string_view said) { return layer_of(user_data(said)).packs_pictures; };
  EXPECT_TRUE(packs("DivX503b1393p"));
  EXPECT_TRUE(packs("DivX501Build413p"));
  for (const std::string_view said :
       {"DivX503b1393", "DivX503b1393n", "DivX", "DivX5p", "XviD0055p", "divX503b1393p", ""}) {
    EXPECT_FALSE(packs(said)) << said;
  }
  EXPECT_TRUE(layer_of(user_data("XviD0055")).names_encoder);
  EXPECT_TRUE(layer_of(kLayer + user_data("Lavc58.9")).names_encoder);
  EXPECT_FALSE(layer_of(kLayer + user_data("Somebody")).names_encoder);
}

TEST(Mpeg4Pictures, SurviveAnyBytes) {
  std::mt19937 random(1);
  const Bytes valid = kLayer + user_data("DivX503b1393p") + picture('I') + picture('B');
  for (int i = 0; i < 20'000; ++i) {
    Bytes bytes = valid;
    bytes.resize(random() % (valid.size() + 1));
    for (int k = 0; k < 3 && !bytes.empty(); ++k) {
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    }
    const Mpeg4Layer layer = layer_of(bytes);
    EXPECT_LE(layer.time_bits, 16);
    EXPECT_LE(mpeg4_parameters(bytes).size(), bytes.size());
    for (auto found = next_mpeg4_picture(bytes); found;
         found = next_mpeg4_picture(bytes, found->at + 4)) {
      layer.is_empty(*found);
    }
  }
}

}  // namespace
}  // namespace headrace
