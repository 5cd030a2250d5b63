// SPDX-License-Identifier: Apache-2.0
// Audio of Matroska files whose blocks hold several frames each (RFC 9559, 10.3).
#include "headrace/codecs/audio/mkv_audio_track.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/codecs/audio/audio_clip.h"
#include "headrace/codecs/media/mkv_test_elements.h"

namespace headrace {
namespace {

using namespace mkv_test;

constexpr uint8_t kXiph = 0x02, kEbml = 0x06, kEqual = 0x04;

// Audio with 8-bit samples, a hundred per second.
Film film_of(const Bytes& blocks) {
  Film film;
  film.type = 2;
  film.codec = "A_PCM/INT/LIT";
  film.parameters = {};
  film.more_of_track =
      element(mkv::kAudio, element(mkv::kSamplingFrequency, real(100)) +
                               element(mkv::kChannels, 1) + element(mkv::kBitDepth, 8));
  film.clusters = element(mkv::kCluster, element(mkv::kTimestamp, 0) + blocks);
  return film;
}
Bytes laced(int16_t time, uint8_t how, const Bytes& content) {
  return element(mkv::kSimpleBlock, block(1, time, 0x80 | how, content));
}

// "1 2 2 3": each frame's first byte, repeated as often as the frame has bytes; or an error's code.
std::string frames_of(const Bytes& blocks) {
  const Bytes file = film_of(blocks).file();
  const Result<MkvAudioTrack> audio = read_mkv_audio_track(file);
  if (!audio) return std::string(audio.error().code->id);
  std::string out;
  for (const MediaPacket& packet : audio->packets) {
    for (uint32_t i = 0; i < packet.size; ++i) {
      out += std::to_string(file[static_cast<size_t>(packet.offset) + i]);
    }
    out += ' ';
  }
  return out;
}

TEST(MatroskaBlock, MayHoldSeveralFramesPrecededByTheirSizes) {
  EXPECT_EQ(frames_of(laced(0, 0, {1, 1})), "11 ");
  EXPECT_EQ(frames_of(laced(0, kXiph, {2, 1, 2, 1, 2, 2, 3})), "1 22 3 ");
  EXPECT_EQ(frames_of(laced(0, kEqual, {2, 1, 1, 2, 2, 3, 3})), "11 22 33 ");
  EXPECT_EQ(frames_of(laced(0, kEbml, {3, 0x82, 0xBE, 0xC0, 1, 1, 2, 3, 3, 4})), "11 2 33 4 ");
  std::string expected(256, '1');
  expected += " 2 ";
  EXPECT_EQ(frames_of(laced(0, kXiph, Bytes{1, 255, 1} + Bytes(256, 1) + Bytes{2})), expected);
}

TEST(MatroskaBlock, IsAnErrorIfItsFramesExceedIt) {
  EXPECT_EQ(frames_of(laced(0, kXiph, {1, 9, 1, 2})), "HR0350");
  EXPECT_EQ(frames_of(laced(0, kXiph, {2, 1, 255})), "HR0350");
  EXPECT_EQ(frames_of(laced(0, kEqual, {2, 1, 1})), "HR0350");
  EXPECT_EQ(frames_of(laced(0, kEbml, {2, 0x81, 0x80, 1})), "HR0350");  // 62 to one less
  EXPECT_EQ(frames_of(laced(0, kEbml, {2})), "HR0350");
}

// All frames of a block have its time: those of the last block are not a gap.
TEST(MatroskaAudio, IsReadFromBlocksOfManyFrames) {
  Bytes blocks, samples;
  for (uint8_t i = 0; i < 5; ++i) {
    Bytes content{7};  // eight frames of ten samples
    for (uint8_t k = 0; k < 80; ++k) content.push_back(static_cast<uint8_t>(80 * (i % 3) + k));
    samples = samples + Bytes(content.begin() + 1, content.end());
    blocks = blocks + laced(static_cast<int16_t>(800 * i), kEqual, content);
  }
  const Bytes file = film_of(blocks).file();
  Buffer padded(file.size());
  std::memcpy(padded.data(), file.data(), file.size());
  AudioDecoders decoders;
  const Result<AudioClip> audio = open_audio(padded.bytes(), decoders);
  ASSERT_TRUE(audio) << audio.error().message();
  ASSERT_EQ(audio->frames(), 400);
  std::vector<float> heard(400);
  ASSERT_TRUE(decode_samples(*audio, decoders, heard.data(), 400));
  for (size_t i = 0; i < heard.size(); ++i) {
    EXPECT_EQ(heard[i], (float(samples[i]) - 128) / 128) << i;
  }
}

std::string code_of(const Film& film) {
  const Bytes file = film.file();
  Buffer padded(file.size());
  std::memcpy(padded.data(), file.data(), file.size());
  AudioDecoders decoders;
  const Result<AudioClip> audio = open_audio(padded.bytes(), decoders);
  return audio ? "good" : std::string(audio.error().code->id);
}

TEST(MatroskaAudio, IsRefusedIfPartsAreMissing) {
  const auto code = [](int16_t last) {
    Bytes blocks;
    for (int16_t i = 0; i < 9; ++i) {
      blocks = blocks + laced(static_cast<int16_t>(i < 8 ? 100 * i : last), 0, Bytes(10, 128));
    }
    return code_of(film_of(blocks));
  };
  EXPECT_EQ(code(800), "good");
  EXPECT_EQ(code(1200), "HR0352");
}

// A block of ten samples of ten milliseconds, with this many nanoseconds to discard.
Bytes padded_block(int16_t time, int64_t discards) {
  Bytes number;
  for (int shift = 56; shift >= 0; shift -= 8) {
    number.push_back(static_cast<uint8_t>(discards >> shift));
  }
  return element(mkv::kBlockGroup, element(mkv::kBlock, block(1, time, 0, Bytes(10, 128))) +
                                       element(mkv::kDiscardPadding, number));
}

TEST(MatroskaAudio, ExcludesThePaddingOfItsLastBlock) {
  const auto frames = [](const Bytes& last) -> int64_t {
    const Bytes file = film_of(laced(0, 0, Bytes(10, 128)) + last).file();
    Buffer padded(file.size());
    std::memcpy(padded.data(), file.data(), file.size());
    AudioDecoders decoders;
    const Result<AudioClip> audio = open_audio(padded.bytes(), decoders);
    return audio ? audio->frames() : -1;
  };
  EXPECT_EQ(frames(padded_block(100, 0)), 20);
  EXPECT_EQ(frames(padded_block(100, 40'000'000)), 16);
  EXPECT_EQ(frames(padded_block(100, 100'000'000)), 10);
  EXPECT_EQ(frames(padded_block(100, 210'000'000)), -1);  // more than the block has
  EXPECT_EQ(frames(padded_block(100, INT64_MAX)), -1);
}

TEST(MatroskaAudio, IsRefusedIfOtherBlocksDiscardSamples) {
  const Bytes whole = laced(100, 0, Bytes(10, 128));
  EXPECT_EQ(code_of(film_of(padded_block(0, 40'000'000) + whole)), "HR0352");
  EXPECT_EQ(code_of(film_of(padded_block(0, -40'000'000))), "HR0352");
  EXPECT_EQ(code_of(film_of(padded_block(0, 0) + whole)), "good");
}

// Less than the clock's tolerance over the whole file, and a fiftieth of a second late.
TEST(MatroskaAudio, IsRefusedIfOnePacketIsMissing) {
  const auto code = [](int missing, int in_block) {
    Bytes blocks;
    for (int i = 0; i < 48; i += in_block) {
      const auto time = static_cast<int16_t>(std::lround(i * 1024 / 48.0));
      Bytes content(size_t(in_block) - (i <= missing && missing < i + in_block), 7);
      if (content.empty()) continue;
      const auto more = static_cast<uint8_t>(content.size() - 1);
      blocks = blocks + (in_block == 1 ? laced(time, 0, content)
                                       : laced(time, kEqual, Bytes{more} + content));
    }
    Film film = film_of(blocks);
    film.codec = "A_AAC";
    film.parameters = {0x11, 0x88};  // LC, 48 kHz, one channel
    return code_of(film);
  };
  EXPECT_EQ(code(-1, 1), "good");
  EXPECT_EQ(code(-1, 4), "good");
  EXPECT_EQ(code(20, 1), "HR0352");
  EXPECT_EQ(code(20, 4), "HR0352");
}

}  // namespace
}  // namespace headrace
