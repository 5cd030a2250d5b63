// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <string_view>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/codecs/audio/audio_codec.h"

namespace headrace {
namespace {

TEST(TemplateAudio, GivesTheSamplesOfAWindow) {
  constexpr std::string_view kAudio = "HRAUDIO\x80\xc0\x40";
  Buffer bytes(kAudio.size());
  std::memcpy(bytes.data(), kAudio.data(), kAudio.size());
  const AudioCodecRecord* const codec = audio_codec_of(bytes.bytes());
  ASSERT_NE(codec, nullptr);
  EXPECT_EQ(codec->name, "template_audio");
  const auto decoder = codec->make();
  const Result<AudioHeader> header = decoder->read_header(bytes.bytes());
  ASSERT_TRUE(header);
  EXPECT_EQ(header->frames, 3);
  std::vector<float> samples(2);
  ASSERT_TRUE(decoder->decode(
      {.file = bytes.bytes(), .begin = 1, .count = 2, .planes = samples.data(), .stride = 2}));
  EXPECT_EQ(samples, (std::vector<float>{0.5f, -0.5f}));
}

TEST(TemplateAudio, AnEmptyFileIsAnError) {
  Buffer bytes(7);
  std::memcpy(bytes.data(), "HRAUDIO", 7);
  EXPECT_FALSE(audio_codec_of(bytes.bytes())->make()->read_header(bytes.bytes()));
}

}  // namespace
}  // namespace headrace
