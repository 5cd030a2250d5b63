// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/audio/audio_clip.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/base/registry.h"
#include "headrace/codecs/audio/audio_codec.h"

namespace headrace {
namespace {

void add_number(std::vector<uint8_t>& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<uint8_t>(value >> 8 * i));
}
void add_word(std::vector<uint8_t>& out, std::string_view word) {
  out.insert(out.end(), word.begin(), word.end());
}

// A 16-bit WAV whose frame i holds i * channels + c - 1000.
std::vector<uint8_t> counting_wav(int frames, int channels, uint32_t data_length = 0) {
  std::vector<uint8_t> out;
  add_word(out, "RIFF");
  add_number(out, 0, 4);
  add_word(out, "WAVEfmt ");
  add_number(out, 16, 4);
  add_number(out, 1, 2);
  add_number(out, static_cast<uint64_t>(channels), 2);
  add_number(out, 8000, 4);
  add_number(out, static_cast<uint64_t>(8000 * channels * 2), 4);
  add_number(out, static_cast<uint64_t>(channels * 2), 2);
  add_number(out, 16, 2);
  add_word(out, "data");
  add_number(out, data_length ? data_length : static_cast<uint64_t>(frames * channels * 2), 4);
  for (int i = 0; i < frames * channels; ++i) {
    add_number(out, static_cast<uint64_t>(static_cast<uint16_t>(i - 1000)), 2);
  }
  return out;
}

Buffer buffer_of(const std::vector<uint8_t>& bytes) {
  Buffer out(bytes.size());
  if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

std::vector<float> frames_of(const AudioClip& audio, AudioDecoders& decoders) {
  std::vector<float> out(audio.sample_bytes() / sizeof(float), 7.0f);
  EXPECT_TRUE(decode_samples(audio, decoders, out.data(), audio.frames()));
  return out;
}

TEST(AudioClip, IsTrimmedAndPaddedLikeItsDecodedSamples) {
  const Buffer file = buffer_of(counting_wav(50, 1));
  AudioDecoders decoders;
  std::mt19937 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    Result<AudioClip> audio = open_audio(file.bytes(), decoders);
    ASSERT_TRUE(audio);
    std::vector<float> expected = frames_of(*audio, decoders);
    for (int step = 0; step < 4; ++step) {
      const int from = static_cast<int>(random() % 60) - 20;
      const int length = static_cast<int>(random() % 70);
      std::vector<float> next(static_cast<size_t>(length));
      for (int i = 0; i < length; ++i) {
        const int at = from + i;
        if (at >= 0 && at < std::ssize(expected)) next[size_t(i)] = expected[size_t(at)];
      }
      expected = next;
      audio->cut(from, length);
      ASSERT_EQ(audio->frames(), length);
      ASSERT_EQ(frames_of(*audio, decoders), expected) << "trial " << trial;
    }
  }
}

TEST(AudioClip, IsStoredChannelByChannel) {
  const Buffer file = buffer_of(counting_wav(3, 2));
  AudioDecoders decoders;
  const Result<AudioClip> audio = open_audio(file.bytes(), decoders);
  ASSERT_TRUE(audio);
  EXPECT_EQ(audio->header.sample_rate, 8000);
  std::vector<float> expected;
  for (const int number : {0, 2, 4, 1, 3, 5}) expected.push_back(float(number - 1000) / 32768);
  EXPECT_EQ(frames_of(*audio, decoders), expected);
}

TEST(Wav, TruncatedAtAnyLengthIsAnErrorIfSamplesAreMissing) {
  const std::vector<uint8_t> whole = counting_wav(20, 2);
  const auto wav = Registry<AudioCodecRecord>::find("wav")->make();
  for (size_t length = 0; length < whole.size(); ++length) {
    const Buffer cut = buffer_of({whole.begin(), whole.begin() + static_cast<long>(length)});
    EXPECT_FALSE(wav->read_header(cut.bytes())) << length;
  }
  EXPECT_TRUE(wav->read_header(buffer_of(whole).bytes()));
}

TEST(Wav, WithAnyByteChangedNeverReadsOutsideItsBytes) {
  const std::vector<uint8_t> whole = counting_wav(20, 2);
  AudioDecoders decoders;
  for (size_t place = 0; place < 48; ++place) {
    for (int value = 0; value < 256; ++value) {
      std::vector<uint8_t> changed = whole;
      changed[place] = static_cast<uint8_t>(value);
      const Buffer file = buffer_of(changed);
      const Result<AudioClip> audio = open_audio(file.bytes(), decoders);
      if (!audio) continue;
      ASSERT_LE(audio->header.frames, std::ssize(changed));
      frames_of(*audio, decoders);
    }
  }
}

TEST(UnsupportedAudio, IsRejectedByName) {
  AudioDecoders decoders;
  const std::vector<uint8_t> aiff{'F', 'O', 'R', 'M', 0, 0, 0, 4, 'A', 'I', 'F', 'F'};
  const Buffer file = buffer_of(aiff);
  const Result<AudioClip> audio = open_audio(file.bytes(), decoders);
  ASSERT_FALSE(audio);
  EXPECT_EQ(audio.error().code->id, "HR0352");
  EXPECT_NE(audio.error().what.find("AIFF"), std::string::npos);
  EXPECT_NE(audio.error().hint.find("out.flac"), std::string::npos);
}

TEST(EveryAudioCodec, DescribesItself) {
  EXPECT_GE(Registry<AudioCodecRecord>::all().size(), 6u);
  for (const AudioCodecRecord* codec : Registry<AudioCodecRecord>::all()) {
    EXPECT_GT(codec->doc.size(), 10u) << codec->name;
    EXPECT_FALSE(codec->oracle.empty()) << codec->name;
    EXPECT_FALSE(codec->suffixes.empty()) << codec->name;
    EXPECT_FALSE(codec->sniff({})) << codec->name;
  }
}

}  // namespace
}  // namespace headrace
