// SPDX-License-Identifier: Apache-2.0
// The coding of an MP4 file's audio. The samples are tested in tests/test_audio_codecs.py and
// tests/test_video_audio.py.
#include "headrace/codecs/audio/mp4_audio_track.h"

#include <gtest/gtest.h>

#include "headrace/codecs/media/mp4_test_boxes.h"

namespace headrace {
namespace {

using namespace mp4_test;

Bytes entry_with(const Bytes& parameters) {
  const auto sized = [](uint8_t tag, const Bytes& content) {
    return Bytes{tag, static_cast<uint8_t>(content.size())} + content;
  };
  Bytes head{0x40, 0x15};
  head.resize(13, 0);
  const Bytes stream = sized(3, Bytes{0, 1, 0} + sized(4, head + sized(5, parameters)));
  return box("mp4a", Bytes(28, 0) + box("esds", numbers({0}) + stream));
}

Movie movie_with_audio(const std::vector<Bytes>& parameters, uint32_t used) {
  Movie movie = counting_movie(4);
  movie.handler = "soun";
  Bytes stsd = numbers({0, static_cast<uint32_t>(parameters.size())});
  for (const Bytes& each : parameters) stsd = stsd + entry_with(each);
  movie.instead["stsd"] = stsd;
  movie.instead["stsc"] = numbers({0, 1, 1, movie.samples_per_chunk, used});
  return movie;
}

TEST(Mp4Audio, UsesTheSampleEntryOfItsPackets) {
  const Bytes one{0x11, 0x90}, other{0x12, 0x10};
  const auto parameters = [&](uint32_t used) {
    const Result<Mp4AudioTrack> audio =
        read_mp4_audio_track(movie_with_audio({one, other}, used).file());
    EXPECT_TRUE(audio) << audio.error().message();
    return audio ? audio->parameters : Bytes{};
  };
  EXPECT_EQ(parameters(1), one);
  EXPECT_EQ(parameters(2), other);
  const Result<Mp4AudioTrack> lacking =
      read_mp4_audio_track(movie_with_audio({one, other}, 3).file());
  ASSERT_FALSE(lacking);
  EXPECT_EQ(lacking.error().code->id, "HR0361");
}

}  // namespace
}  // namespace headrace
