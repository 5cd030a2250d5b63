// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/codecs/video/avi_headers.h"
#include "headrace/codecs/video/avi_test_chunks.h"
#include "headrace/codecs/video/track_readers.h"
#include "headrace/codecs/video/video_file.h"

namespace headrace {
namespace {

using namespace avi_test;

std::string avi_code(const Bytes& file) {
  const Result<VideoTrack> track = read_video(file);
  return track ? "good" : std::string(track.error().code->id);
}
VideoTrack avi_track(const Bytes& file) {
  Result<VideoTrack> track = read_video(file);
  EXPECT_TRUE(track) << track.error().message();
  return track ? std::move(*track) : VideoTrack{};
}
// "I0 P2 B1": kinds in decoding order, with their ticks; "-" after those that are not shown.
std::string shown(const Bytes& file) {
  const VideoTrack track = avi_track(file);
  std::string out;
  for (uint32_t i = 0; i < track.packets.size(); ++i) {
    const MediaPacket& packet = track.packets[i];
    const size_t at = static_cast<size_t>(packet.offset);
    const std::vector<uint8_t> bytes(file.begin() + int64_t(at),
                                     file.begin() + int64_t(at + packet.size));
    size_t code = 0;
    while (code + 4 < bytes.size() && !(bytes[code] == 0 && bytes[code + 1] == 0 &&
                                        bytes[code + 2] == 1 && bytes[code + 3] == 0xB6)) {
      ++code;
    }
    out += (out.empty() ? "" : " ") + std::string(1, "IPBS"[bytes.at(code + 4) >> 6]) +
           std::to_string(packet.pts);
    if (!std::ranges::count(track.frames, i)) out += '-';
    EXPECT_EQ(packet.key, bytes.at(code + 4) >> 6 == 0);
  }
  return out;
}
// A file with packets of these kinds; "." is empty, "p" is a picture without content, and brackets
// combine pictures into one packet.
Avi film_of(std::string_view kinds, std::string_view said = "Lavc58") {
  Avi film;
  bool open = false;
  for (const char kind : kinds) {
    if (kind == '[') film.packets.emplace_back();
    open = kind == '[' || (open && kind != ']');
    if (kind == '[' || kind == ']') continue;
    Bytes bytes = kind == '.' ? Bytes{} : kind == 'p' ? picture('P', false, 6) : picture(kind);
    if (kind == 'I') bytes = kLayer + user_data(said) + bytes;
    if (open) {
      film.packets.back() = film.packets.back() + bytes;
    } else {
      film.packets.push_back(bytes);
    }
  }
  return film;
}
constexpr std::string_view kPacked = "DivX503b1393p";

TEST(AviFile, LocatesItsPackets) {
  Avi film;
  film.coding = "MJPG";
  film.rate = 30000;
  film.scale = 1001;
  film.packets = {{0}, {1, 1}, {2, 2, 2}};
  const Bytes file = film.file();
  const VideoTrack track = avi_track(file);
  EXPECT_EQ(track.codec, VideoCodec::kMJPEG);
  EXPECT_EQ(track.width, 64);
  EXPECT_EQ(track.height, 48);
  EXPECT_EQ(track.frames, (std::vector<uint32_t>{0, 1, 2}));
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(track.packets[i].size, i + 1);
    EXPECT_EQ(track.packets[i].pts, int64_t(i));
    EXPECT_TRUE(track.packets[i].key);
    EXPECT_EQ(file[static_cast<size_t>(track.packets[i].offset) + i], i);
  }
  EXPECT_EQ(track.duration, 3);
  EXPECT_DOUBLE_EQ(track.seconds(30), 1.001);
}

TEST(AviFile, ShowsFramesInTheOrderOfTheirTypes) {
  EXPECT_EQ(shown(film_of("IPPS").file()), "I0 P1 P2 S3");
  EXPECT_EQ(shown(film_of("IPBPBB").file()), "I0 P2 B1 P5 B3 B4");
  EXPECT_EQ(avi_track(film_of("IPBPBB").file()).frames, (std::vector<uint32_t>{0, 2, 1, 4, 5, 3}));
  // In the second group, pictures shown before the first one need the previous group.
  EXPECT_EQ(shown(film_of("IPIBB").file()), "I0 P1 I4 B2 B3");
  EXPECT_EQ(shown(film_of("IBPB").file()), "I1 B0- P3 B2");  // no reference before the second
}

TEST(AviFile, HasTicksThatRepeatThePreviousFrame) {
  EXPECT_EQ(shown(film_of("I.P..P").file()), "I0 P2 P5");
  EXPECT_EQ(shown(film_of("IPpP").file()), "I0 P1 P2- P3");
  Avi late = film_of("IP");
  late.start = 7;
  EXPECT_EQ(shown(late.file()), "I7 P8");
  EXPECT_EQ(avi_track(late.file()).duration, 9);
}

TEST(AviFile, IsReadAsIfNoFramesWerePacked) {
  EXPECT_EQ(shown(film_of("I[PB]p[PB]Bp", kPacked).file()),
            shown(film_of("IPBPBB", kPacked).file()));
  EXPECT_EQ(shown(film_of("I[PB].P", kPacked).file()), "I0 P2 B1 P3");
  // its time slot is missing
  EXPECT_EQ(shown(film_of("I[PB]p[PB]", kPacked).file()), "I0 P2 B1 P3");
  EXPECT_EQ(avi_code(film_of("I[PB][PB]", kPacked).file()), "HR0361");
  // Not declared as packed: bytes that look like it are part of the picture.
  EXPECT_EQ(shown(film_of("I[PB]P").file()), "I0 P1 P2");
}

// However far into the packet the second picture begins.
TEST(AviFile, MayDeclarePackedFramesAfterItsStart) {
  Avi film = film_of("IPPP");
  film.packets[2] = kLayer + user_data(kPacked) + picture('P', true, 600) + picture('B');
  film.packets.insert(film.packets.begin() + 3, picture('P', false, 6));
  EXPECT_EQ(shown(film.file()), "I0 P1 P3 B2 P4");
}

TEST(AviFile, OpensItsDecoderWithTheHeadersBeforeFrames) {
  const auto parameters = [](Avi film) { return avi_track(film.file()).parameters; };
  EXPECT_EQ(parameters(film_of("IP")), kLayer + user_data("Lavc58"));
  Avi said = film_of("IP");
  said.parameters = kLayer;
  EXPECT_EQ(parameters(said), kLayer);
  Avi xvid = film_of("IP", "somebody");
  EXPECT_EQ(parameters(xvid), kLayer + user_data("somebody"));
  xvid.coding = "xvid";
  EXPECT_EQ(parameters(xvid), kLayer + user_data("somebody") + user_data("XviD0000"));
  xvid = film_of("IP");
  xvid.coding = "XVID";
  EXPECT_EQ(parameters(xvid), kLayer + user_data("Lavc58"));
}

TEST(AviFile, MayHaveOtherStreamsListsAndSegments) {
  Avi film = film_of("IPPP");
  const Bytes packets = film.movi();
  const std::string expected = shown(film.file());
  const auto sized = [](const Bytes& content) { return list("movi", content); };
  const Bytes noise = chunk("JUNK", Bytes(13, 0)) + chunk("01wb", {1, 2, 3}) + chunk("00pc", {1});
  EXPECT_EQ(
      shown(list("AVI ", film.headers() + noise + sized(noise + packets + noise) + noise, "RIFF")),
      expected);
  EXPECT_EQ(shown(list("AVI ", film.headers() + sized(list("rec ", packets) + noise), "RIFF")),
            expected);
  Avi first = film_of("IP"), more = film_of("PP");
  EXPECT_EQ(shown(list("AVI ", film.headers() + sized(first.movi()), "RIFF") +
                  list("AVIX", sized(more.movi()), "RIFF")),
            expected);
  Avi second = film_of("IPPP");
  second.name = "01dc";
  Bytes strh = text("auds") + Bytes(52, 0);
  second.streams_before = list("strl", chunk("strh", strh) + chunk("strf", Bytes(16, 0)));
  EXPECT_EQ(shown(second.file()), expected);
}

TEST(AviFile, ReportsWhetherItHasAudio) {
  Avi film = film_of("IP");
  EXPECT_FALSE(avi_has_audio(film.file()).value());
  const auto with = [](std::string_view kind) {
    return list("strl", chunk("strh", text(kind) + Bytes(52, 0)) + chunk("strf", Bytes(16, 0)));
  };
  film.streams_before = with("txts");
  EXPECT_FALSE(avi_has_audio(film.file()).value());
  film.streams_before = with("txts") + with("auds");
  EXPECT_TRUE(avi_has_audio(film.file()).value());
}

TEST(AviFile, IsRefusedWithTheNameOfItsCodec) {
  const auto refused = [](std::string_view coding) {
    Avi film = film_of("I");
    film.coding = coding;
    const Result<VideoTrack> track = read_video(film.file());
    EXPECT_FALSE(track);
    return track ? ""
                 : std::string(track.error().code->id) + track.error().what + track.error().hint;
  };
  EXPECT_NE(refused("DIV3").find("HR0363"), std::string::npos);
  EXPECT_NE(refused("DIV3").find("\"DIV3\""), std::string::npos);
  EXPECT_NE(refused("h264").find("+genpts"), std::string::npos);
  EXPECT_NE(refused({"\0\0\0\0", 4}).find("uncompressed"), std::string::npos);
}

TEST(AviFile, IsAnErrorIfInvalid) {
  Avi film = film_of("IP");
  film.rate = 0;
  EXPECT_EQ(avi_code(film.file()), "HR0361");
  film = film_of("IP");
  film.width = 0;
  EXPECT_EQ(avi_code(film.file()), "HR0361");
  EXPECT_EQ(avi_code(film_of("PI").file()), "HR0361");
  EXPECT_EQ(avi_code(film_of("").file()), "HR0364");
  EXPECT_EQ(avi_code(film_of("...").file()), "HR0364");
  film = film_of("IP");
  film.packets.push_back({1, 2, 3});
  EXPECT_EQ(avi_code(film.file()), "HR0361");
  EXPECT_EQ(avi_code(list("AVI ", list("movi", film.movi()) + film.headers(), "RIFF")), "HR0361");
  EXPECT_EQ(avi_code(list("AVI ", list("hdrl", Bytes(56, 0)), "RIFF")), "HR0364");
  EXPECT_EQ(avi_code(list("AVI ", {}, "RIFF")), "HR0362");
}

// Returns all declared packets, or an error.
TEST(AviFile, IsAnErrorIfTruncated) {
  const Bytes file = film_of("IPBPPB").file();
  for (size_t size = 0; size < file.size(); ++size) {
    const Bytes part(file.begin(), file.begin() + int64_t(size));
    EXPECT_NE(avi_code(part), "good") << size;
  }
}

TEST(AviFile, WithSeveralPartsIsAnErrorIfTruncated) {
  Avi first = film_of("IPBP"), more = film_of("PBP");
  const Bytes begin = first.file();
  const Bytes file = begin + list("AVIX", list("movi", more.movi()), "RIFF");
  ASSERT_EQ(avi_track(file).frames.size(), 7u);
  for (size_t size = begin.size() + 8; size < file.size(); ++size) {
    const Bytes part(file.begin(), file.begin() + int64_t(size));
    EXPECT_NE(avi_code(part), "good") << size;
  }
}

TEST(AviFile, SurvivesDamage) {
  const Bytes file = film_of("I[PB]p[PB]pPP", kPacked).file();
  std::mt19937 random(1);
  for (int i = 0; i < 10'000; ++i) {
    Bytes damaged = file;
    for (int k = 0; k < 3; ++k) damaged[random() % damaged.size()] = static_cast<uint8_t>(random());
    const Result<VideoTrack> track = read_video(damaged);
    if (!track) continue;
    for (const MediaPacket& packet : track->packets) {
      ASSERT_LE(uint64_t(packet.offset) + packet.size, damaged.size());
    }
  }
}

}  // namespace
}  // namespace headrace
