// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "headrace/codecs/media/mp4_test_boxes.h"
#include "headrace/codecs/video/track_readers.h"
#include "headrace/codecs/video/video_file.h"

namespace headrace {
namespace mp4_track_test {

using namespace mp4_test;

std::string code_of(const Bytes& file) {
  const Result<VideoTrack> track = read_video(file);
  return track ? "good" : std::string(track.error().code->id);
}

VideoTrack track_of(const Bytes& file) {
  Result<VideoTrack> track = read_video(file);
  EXPECT_TRUE(track) << track.error().message();
  return track ? std::move(*track) : VideoTrack{};
}

// Each packet is at its position in the file: its bytes are its number.
void expect_counting(const Bytes& file, const VideoTrack& track, size_t packets) {
  ASSERT_EQ(track.packets.size(), packets);
  for (size_t i = 0; i < packets; ++i) {
    const MediaPacket& packet = track.packets[i];
    ASSERT_EQ(packet.size, i + 1);
    EXPECT_EQ(file[static_cast<size_t>(packet.offset)], i);
    EXPECT_EQ(file[static_cast<size_t>(packet.offset) + i], i);
  }
}

std::vector<int64_t> times_of(const VideoTrack& track) {
  std::vector<int64_t> times;
  for (const uint32_t frame : track.frames) times.push_back(track.packets[frame].pts);
  return times;
}

TEST(Mp4File, LocatesItsPackets) {
  for (const bool first : {true, false}) {
    for (const bool wide : {true, false}) {
      for (const uint32_t chunk : {1u, 2u, 3u, 7u, 50u}) {
        Movie movie = counting_movie(7);
        movie.moov_first = first;
        movie.wide_chunks = wide;
        movie.samples_per_chunk = chunk;
        const Bytes file = movie.file();
        const VideoTrack track = track_of(file);
        expect_counting(file, track, 7);
        EXPECT_EQ(track.frames, (std::vector<uint32_t>{0, 1, 2, 3, 4, 5, 6}));
        EXPECT_EQ(times_of(track), (std::vector<int64_t>{0, 10, 20, 30, 40, 50, 60}));
        EXPECT_EQ(track.duration, 70);
        EXPECT_EQ(track.ticks_per_second, 300);
        EXPECT_EQ(track.width, 64);
        EXPECT_EQ(track.height, 48);
        EXPECT_TRUE(track.packets[0].key);
        EXPECT_FALSE(track.packets[1].key);
        EXPECT_EQ(track.parameters, (Bytes{1, 100, 0, 30, 0xFF, 0xE0, 0}));
      }
    }
  }
}

TEST(Mp4File, ReadsSizesInEveryForm) {
  Movie movie = counting_movie(3);
  movie.instead["stsz"] = {};
  EXPECT_EQ(code_of(movie.file()), "HR0361");
  const std::vector<std::pair<uint32_t, Bytes>> tables{
      {4, {0x12, 0x30}}, {8, {1, 2, 3}}, {16, {0, 1, 0, 2, 0, 3}}};
  for (const auto& [bits, table] : tables) {
    movie.more_tables = box("stz2", numbers({0, bits, 3}) + table);
    const Bytes file = movie.file();
    expect_counting(file, track_of(file), 3);
  }
  movie.more_tables = box("stz2", numbers({0, 5, 3}) + Bytes{1, 2, 3});
  EXPECT_EQ(code_of(movie.file()), "HR0361");
  Movie equal;  // one size for all
  equal.samples = {{.content = {0, 0}, .key = true}, {.content = {1, 1}}, {.content = {2, 2}}};
  equal.instead["stsz"] = numbers({0, 2, 3});
  const Bytes file = equal.file();
  const VideoTrack track = track_of(file);
  ASSERT_EQ(track.packets.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(track.packets[i].size, 2u);
    EXPECT_EQ(file[static_cast<size_t>(track.packets[i].offset)], i);
  }
}

TEST(Mp4File, ShowsFramesInTheOrderOfTheirTimes) {
  Movie movie = counting_movie(5);  // I P B B P
  const int32_t delays[] = {20, 40, 10, 10, 20};
  for (size_t i = 0; i < 5; ++i) movie.samples[i].delay = delays[i];
  const VideoTrack track = track_of(movie.file());
  EXPECT_EQ(track.frames, (std::vector<uint32_t>{0, 2, 3, 1, 4}));
  EXPECT_EQ(times_of(track), (std::vector<int64_t>{20, 30, 40, 50, 60}));
}

TEST(Mp4File, MayHaveDelaysBelowZero) {
  Movie movie = counting_movie(3);
  movie.samples[1].delay = 10;
  movie.samples[2].delay = -10;
  EXPECT_EQ(track_of(movie.file()).frames, (std::vector<uint32_t>{0, 2, 1}));
}

TEST(Mp4File, BeginsAtItsEditList) {
  Movie movie = counting_movie(6);
  movie.elst = numbers({0, 1, 100, 20, 0x10000});  // 100 / 1000 s of the media, from 20 / 300 s on
  const VideoTrack track = track_of(movie.file());
  EXPECT_EQ(track.packets.size(), 6u);  // frames that are shown may need earlier ones
  EXPECT_EQ(track.frames, (std::vector<uint32_t>{2, 3, 4}));
  EXPECT_EQ(times_of(track), (std::vector<int64_t>{0, 10, 20}));
  EXPECT_EQ(track.duration, 30);
}

TEST(Mp4File, MayBeginLate) {
  Movie movie = counting_movie(3);
  movie.elst = numbers({0, 2, 500, 0xFFFFFFFF, 0x10000, 100, 0, 0x10000});
  EXPECT_EQ(times_of(track_of(movie.file())), (std::vector<int64_t>{150, 160, 170}));
}

TEST(Mp4File, MayHaveConsecutiveEdits) {
  Movie movie = counting_movie(6);
  movie.elst = numbers({0, 2, 100, 0, 0x10000, 100, 30, 0x10000});
  EXPECT_EQ(track_of(movie.file()).frames.size(), 6u);
  movie.elst = numbers({0, 2, 100, 0, 0x10000, 0, 30, 0x10000});  // 0: to the end
  EXPECT_EQ(track_of(movie.file()).frames.size(), 6u);
}

TEST(Mp4File, IsRejectedIfItsEditsAreUnsupported) {
  Movie movie = counting_movie(6);
  for (const Bytes& elst :
       {numbers({0, 2, 100, 30, 0x10000, 100, 0, 0x10000}),                        // backwards
        numbers({0, 2, 33, 0, 0x10000, 100, 30, 0x10000}),                         // with a gap
        numbers({0, 3, 33, 0, 0x10000, 9, 0xFFFFFFFF, 0x10000, 33, 10, 0x10000}),  // with a pause
        numbers({0, 1, 100, 0, 0x20000}),                                          // twice as fast
        numbers({0, 1, 100, 0, 0})}) {                                             // standing still
    movie.elst = elst;
    EXPECT_EQ(code_of(movie.file()), "HR0363");
  }
  movie.elst = numbers({0, 2, 100, 0, 0x10000});
  EXPECT_EQ(code_of(movie.file()), "HR0361");  // cut off
  movie.elst = numbers({0, 1, 100, 5000, 0x10000});
  EXPECT_EQ(code_of(movie.file()), "HR0364");  // after the end: nothing is shown
}

TEST(Mp4File, HasItsRotation) {
  const uint32_t one = 0x10000, minus = 0xFFFF0000;
  const std::vector<std::pair<int, std::vector<uint32_t>>> matrices{
      {0, {one, 0, 0, 0, one, 0}},       {1, {0, one, 0, minus, 0, 0}},
      {2, {minus, 0, 0, 0, minus, 0}},   {3, {0, minus, 0, one, 0, 0}},
      {0, {0, 0, 0, 0, 0, 0}},           {-1, {minus, 0, 0, 0, one, 0}},  // mirrored
      {-1, {one, one, 0, minus, one, 0}}                                  // an eighth
  };
  for (const auto& [turns, matrix] : matrices) {
    Movie movie = counting_movie(1);
    std::copy(matrix.begin(), matrix.end(), movie.matrix.begin());
    if (turns < 0) {
      EXPECT_EQ(code_of(movie.file()), "HR0363");
    } else {
      EXPECT_EQ(track_of(movie.file()).quarter_turns, turns);
    }
  }
}

TEST(Mp4File, HasItsColors) {
  Movie movie = counting_movie(1);
  const Bytes coded = movie.entry_boxes;
  movie.entry_boxes = coded + box("colr", text("nclx") + Bytes{0, 9, 0, 16, 0, 9, 0x80});
  EXPECT_EQ(track_of(movie.file()).color,
            (VideoColor{ColorMatrix::kBT2020, ColorRange::kFull, ColorTransfer::kPQ}));
  movie.entry_boxes = coded + box("colr", text("nclc") + Bytes{0, 1, 0, 1, 0, 1});
  EXPECT_EQ(track_of(movie.file()).color,
            (VideoColor{ColorMatrix::kBT709, ColorRange::kUnspecified, ColorTransfer::kStandard}));
  movie.entry_boxes = coded + box("colr", text("nclx") + Bytes{0, 9, 0, 18, 0, 14, 0});
  EXPECT_EQ(track_of(movie.file()).color,
            (VideoColor{ColorMatrix::kOther, ColorRange::kLimited, ColorTransfer::kHLG}));
}

TEST(Mp4File, IsRejectedWithAReasonIfUnsupported) {
  Movie movie = counting_movie(2);
  movie.entry = "s263";
  EXPECT_EQ(code_of(movie.file()), "HR0363");
  EXPECT_NE(read_video(movie.file()).error().what.find("\"s263\""), std::string::npos);
  movie.entry = "encv";
  EXPECT_NE(read_video(movie.file()).error().what.find("encrypted"), std::string::npos);
  movie = counting_movie(2);
  movie.instead["dinf"] = box("dref", numbers({0, 1}) + box("url ", numbers({0}) + text("b.mp4")));
  EXPECT_NE(read_video(movie.file()).error().what.find("another file"), std::string::npos);
  movie = counting_movie(2);
  movie.instead["stsc"] = numbers({0, 2, 1, 1, 1, 2, 1, 2});
  movie.samples_per_chunk = 1;
  EXPECT_NE(read_video(movie.file()).error().what.find("codec parameters"), std::string::npos);
  movie = counting_movie(2);
  movie.handler = "soun";
  EXPECT_EQ(code_of(movie.file()), "HR0364");
  EXPECT_EQ(code_of(counting_movie(0).file()), "HR0364");
  EXPECT_EQ(code_of({}), "HR0360");
  EXPECT_EQ(code_of(text("ffconcat version 1.0\nfile other.mp4\n")), "HR0360");
}

TEST(Mp4File, WithInconsistentTablesIsCorrupt) {
  const auto with = [](const std::string& type, const Bytes& content) {
    Movie movie = counting_movie(4);
    movie.instead[type] = content;
    return code_of(movie.file());
  };
  EXPECT_EQ(with("stts", numbers({0, 1, 3, 10})), "HR0361");          // times of three
  EXPECT_EQ(with("ctts", numbers({0, 1, 3, 10})), "HR0361");          //
  EXPECT_EQ(with("stts", numbers({0, 1, 4, 0xFFFFFFFF})), "HR0361");  // back in time
  EXPECT_EQ(with("stts", numbers({0, 9, 4, 10})), "HR0361");          // fewer rows than stated
  EXPECT_EQ(with("stsc", numbers({0, 1, 1, 1, 1})), "HR0361");        // two of four
  EXPECT_EQ(with("stsc", numbers({0, 0})), "HR0361");                 //
  EXPECT_EQ(with("stsz", numbers({0, 0, 9, 1, 2, 3, 4})), "HR0361");  //
  EXPECT_EQ(with("stsz", numbers({0, 40, 4})), "HR0362");             // past the end of the file
  EXPECT_EQ(with("stco", numbers({0, 2, 0x7FFFFFFF, 1})), "HR0362");  //
  EXPECT_EQ(with("stsd", numbers({0, 0})), "HR0361");                 //
  EXPECT_EQ(with("mdhd", numbers({0, 0, 0, 0, 0, 0})), "HR0361");     // no clock
  EXPECT_EQ(with("mvhd", numbers({0, 0, 0, 0, 0})), "HR0361");        //
  EXPECT_EQ(with("tkhd", numbers({0})), "HR0361");                    //
  EXPECT_EQ(with("stss", numbers({0, 0})), "good");                   // no key frames at all
}

TEST(Mp4File, DeclaringBillionsOfPacketsIsRejectedCheaply) {
  for (const Bytes& stsz : {numbers({0, 1, 0xFFFFFFFF}), numbers({0, 0x10000, 0xFFFFFFFF})}) {
    Movie movie = counting_movie(4);
    movie.instead["stsz"] = stsz;
    movie.instead["stts"] = numbers({0, 1, 0xFFFFFFFF, 1});
    movie.instead["ctts"] = {};
    movie.instead["stsc"] = numbers({0, 1, 1, 0xFFFFFFFF, 1});
    movie.instead["stco"] = numbers({0, 1, 0});
    EXPECT_NE(code_of(movie.file()), "good");
  }
}

TEST(Mp4File, IgnoresEmptyPackets) {
  Movie movie = counting_movie(3);
  movie.samples[1].content.clear();
  const VideoTrack track = track_of(movie.file());
  EXPECT_EQ(times_of(track), (std::vector<int64_t>{0, 20}));
}

TEST(Mp4File, UsesItsFirstTrackThatIsNotAThumbnail) {
  Movie chapters = counting_movie(1), pictures = counting_movie(3), off = counting_movie(5);
  off.track_flags = 0;
  const Bytes ftyp = box("ftyp", text("qt  ") + numbers({0}));
  Bytes mvhd = numbers({0, 0, 0, 1000, 0, 0x10000, 0, 0, 0});
  mvhd.resize(100, 0);
  Bytes second = pictures.trak(0);
  second[box("tkhd", {}).size() + 15] = 2;  // its number
  const Bytes chap = box("tref", box("chap", numbers({1})));
  const Bytes moov = box("moov", box("mvhd", mvhd) + box("trak", chapters.trak(0)) +
                                     box("trak", off.trak(0)) + box("trak", second + chap));
  EXPECT_EQ(track_of(ftyp + moov).packets.size(), 3u);
}

// A moof box and its mdat box: one run, whose `rows` come after its data offset.
Bytes fragment(const Bytes& tfhd, const Bytes& tfdt, const Bytes& run, const Bytes& rows,
               const Bytes& data) {
  const auto moof = [&](uint32_t offset) {
    const Bytes time = tfdt.empty() ? Bytes{} : box("tfdt", tfdt);
    return box("moof", box("mfhd", numbers({0, 1})) +
                           box("traf", box("tfhd", tfhd) + time +
                                           box("trun", run + numbers({offset}) + rows)));
  };
  return moof(static_cast<uint32_t>(moof(0).size() + 8)) + box("mdat", data);
}

TEST(Mp4File, MayComeInFragments) {
  Movie movie;
  // Defaults of packets, unless a run overrides them: 10 ticks, 2 bytes, not a key frame.
  movie.more_of_moov = box("mvex", box("trex", numbers({0, 1, 1, 10, 2, 0x10000})));
  const Bytes tfhd = numbers({0x20000, 1}), sizes_unspecified = numbers({0x05, 3}),
              first_is_key(4, 0);
  Bytes file = box("ftyp", text("iso5") + numbers({0})) + movie.moov(0);
  file = file + fragment(tfhd, {}, sizes_unspecified, first_is_key, {0, 0, 1, 1, 2, 2});
  file =
      file + fragment(tfhd, numbers({0, 100}), sizes_unspecified, first_is_key, {3, 3, 4, 4, 5, 5});
  const Bytes rows = numbers({7, 1, 0, 7, 5, 3, 0x10000, static_cast<uint32_t>(-7)});
  file = file + fragment(tfhd, {}, numbers({0xF01, 2}), rows, {6, 7, 7, 7});
  const VideoTrack track = track_of(file);
  ASSERT_EQ(track.packets.size(), 8u);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(file[static_cast<size_t>(track.packets[i].offset)], i);
    EXPECT_EQ(track.packets[i].key, i == 0 || i == 3 || i == 6) << i;
  }
  EXPECT_EQ(times_of(track), (std::vector<int64_t>{0, 10, 20, 100, 110, 120, 130, 137}));
  EXPECT_EQ(track.duration, 144);
  file.resize(file.size() - 3);
  EXPECT_EQ(code_of(file), "HR0362");
}

TEST(Mp4File, DeclaringBillionsOfPacketsInFragmentsIsRejectedCheaply) {
  Movie movie;
  for (const uint32_t size : {0u, 1u}) {
    movie.more_of_moov = box("mvex", box("trex", numbers({0, 1, 1, 10, size, 0})));
    Bytes file = box("ftyp", text("iso5") + numbers({0})) + movie.moov(0);
    file = file + fragment(numbers({0x20000, 1}), {}, numbers({0x01, 0xFFFFFFFF}), {}, {0});
    EXPECT_EQ(code_of(file), size == 0 ? "HR0364" : "HR0361");
  }
}

TEST(Mp4File, WithManyFragmentsAndTracksTakesLinearTime) {
  constexpr uint32_t kMany = 100000;  // processing every pair would take minutes
  Movie movie;
  Bytes trexes, trafs;
  for (uint32_t i = 0; i < kMany; ++i) {
    const Bytes trex = box("trex", numbers({0, 2 + i, 1, 10, 2, 0}));
    const Bytes traf = box("traf", box("tfhd", numbers({0x20000, 2 + i})));
    trexes.insert(trexes.end(), trex.begin(), trex.end());
    trafs.insert(trafs.end(), traf.begin(), traf.end());
  }
  movie.more_of_moov = box("mvex", trexes);
  EXPECT_EQ(code_of(box("ftyp", text("iso5") + numbers({0})) + movie.moov(0) + box("moof", trafs)),
            "HR0364");
}

TEST(Mp4File, OfFragmentsWithImpossibleDurationsIsCorrupt) {
  Movie movie;
  movie.more_of_moov = box("mvex", box("trex", numbers({0, 1, 1, 0xFFFFFFFF, 0, 0})));
  const Bytes empty =
      fragment(numbers({0x20000, 1}), {}, numbers({0x01, 0xFFFFFFFF}), {}, {0});  // packets
  EXPECT_EQ(code_of(box("ftyp", text("iso5") + numbers({0})) + movie.moov(0) + empty), "HR0361");
}

TEST(Mp4File, TruncatedOrDamagedIsAnErrorOrATrackWithinTheFile) {
  Movie movie = counting_movie(9);
  movie.elst = numbers({0, 1, 300, 0, 0x10000});
  const Bytes whole = movie.file();
  const auto check = [](const Bytes& file) {
    const Result<VideoTrack> track = read_video(file);
    if (!track) return false;
    for (const MediaPacket& packet : track->packets) {
      EXPECT_GT(packet.size, 0u);
      EXPECT_LE(static_cast<uint64_t>(packet.offset) + packet.size, file.size());
    }
    for (const uint32_t frame : track->frames) EXPECT_LT(frame, track->packets.size());
    return true;
  };
  EXPECT_TRUE(check(whole));
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(check(Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size))));
  }
  std::mt19937 random(1);
  for (int i = 0; i < 10'000; ++i) {
    Bytes changed = whole;
    for (int k = 0; k <= i % 3; ++k) {
      changed[random() % changed.size()] = static_cast<uint8_t>(i % 2 ? random() : 255);
    }
    check(changed);
  }
}

}  // namespace mp4_track_test
}  // namespace headrace
