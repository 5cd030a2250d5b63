// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "headrace/codecs/media/mkv_test_elements.h"
#include "headrace/codecs/video/track_readers.h"
#include "headrace/codecs/video/video_file.h"

namespace headrace {
namespace {

using namespace mkv_test;

std::string mkv_code(const Bytes& file) {
  const Result<VideoTrack> track = read_video(file);
  return track ? "good" : std::string(track.error().code->id);
}
VideoTrack mkv_track(const Bytes& file) {
  Result<VideoTrack> track = read_video(file);
  EXPECT_TRUE(track) << track.error().message();
  return track ? std::move(*track) : VideoTrack{};
}
// "0 40K 20": times in decoding order, with K after key frames.
std::string times_of(const VideoTrack& track) {
  std::string out;
  for (const MediaPacket& packet : track.packets) {
    out += (out.empty() ? "" : " ") + std::to_string(packet.pts) + (packet.key ? "K" : "");
  }
  return out;
}
Bytes cluster(uint64_t time, const Bytes& blocks) {
  return element(mkv::kCluster, element(mkv::kTimestamp, time) + blocks);
}

Film film_of(const Bytes& clusters) {
  Film film;
  film.clusters = clusters;
  return film;
}
Film short_film() {
  return film_of(
      cluster(0, simple(0, true, {0}) + simple(80, false, {1, 1}) + simple(40, false, {2, 2, 2})) +
      cluster(1000, simple(-20, true, {3, 3, 3, 3})));
}

TEST(MatroskaFile, LocatesItsPackets) {
  const Bytes file = short_film().file();
  const VideoTrack track = mkv_track(file);
  EXPECT_EQ(times_of(track), "0K 80 40 980K");
  EXPECT_EQ(track.frames, (std::vector<uint32_t>{0, 2, 1, 3}));
  for (size_t i = 0; i < 4; ++i) {
    ASSERT_EQ(track.packets[i].size, i + 1);
    EXPECT_EQ(file[static_cast<size_t>(track.packets[i].offset)], i);
    EXPECT_EQ(file[static_cast<size_t>(track.packets[i].offset) + i], i);
  }
  EXPECT_EQ(track.codec, VideoCodec::kH264);
  EXPECT_EQ(track.width, 64);
  EXPECT_EQ(track.height, 48);
  EXPECT_EQ(track.parameters, (Bytes{1, 100, 0, 30, 0xFF, 0xE0, 0}));
  EXPECT_DOUBLE_EQ(track.seconds(1), 1e-3);
}

TEST(MatroskaFile, MayOmitTheLengthsOfItsParts) {
  const Bytes blocks = element(mkv::kTimestamp, 100) + simple(0, true, {0});
  Film film = film_of(endless(mkv::kCluster, blocks) + endless(mkv::kCluster, blocks) +
                      cluster(300, simple(1, true, {0})));
  EXPECT_EQ(times_of(mkv_track(film.file())), "100K 100K 301K");
  film.endless_segment = true;
  EXPECT_EQ(times_of(mkv_track(film.file())), "100K 100K 301K");
}

TEST(MatroskaFile, MayHaveItsBlocksInGroups) {
  const auto group = [](const Bytes& more) {
    return element(mkv::kBlockGroup, element(mkv::kBlock, block(1, 5, 0, {7})) + more);
  };
  const Film film =
      film_of(cluster(10, group({}) + group(element(mkv::kReferenceBlock, 0xFFFFFFFF)) +
                              group(element(mkv::kBlockDuration, 33))));
  const VideoTrack track = mkv_track(film.file());
  EXPECT_EQ(times_of(track), "15K 15 15K");
  EXPECT_EQ(track.duration, 48);
}

// After a two-byte header, more of a block is available than a reader's buffer holds.
TEST(MatroskaFile, MayHaveBlocksInGroupsWhoseSizesTakeOneByte) {
  Bytes frame(40, 7);
  frame.back() = 9;
  const Bytes short_block = block(1, 5, 0, frame);
  const Bytes group =
      element(mkv::kBlockGroup, id(mkv::kBlock) + number(0x80 | short_block.size(), 1) +
                                    short_block + id(mkv::kBlockDuration) + Bytes{0x81, 33});
  const Bytes file = film_of(cluster(10, group + group)).file();
  const VideoTrack track = mkv_track(file);
  EXPECT_EQ(times_of(track), "15K 15K");
  EXPECT_EQ(track.duration, 48);
  for (const MediaPacket& packet : track.packets) {
    ASSERT_EQ(packet.size, frame.size());
    const auto begin = file.begin() + packet.offset;
    EXPECT_EQ(Bytes(begin, begin + packet.size), frame);
  }
}

TEST(MatroskaFile, LastsThroughTheDeclaredOrPreviousFrameDuration) {
  Film film = short_film();
  EXPECT_EQ(mkv_track(film.file()).duration, 980 + 900);
  film.more_of_track = element(mkv::kDefaultDuration, 41666667);
  EXPECT_EQ(mkv_track(film.file()).duration, 980 + 42);
}

TEST(MatroskaFile, HasItsOwnTimestampScale) {
  Film film = short_film();
  film.scale = 20000;
  film.more_of_track = element(mkv::kCodecDelay, 200000);
  const VideoTrack track = mkv_track(film.file());
  EXPECT_EQ(times_of(track), "-10K 70 30 970K");
  EXPECT_DOUBLE_EQ(track.seconds(50), 1e-3);
  film.scale = 0;
  EXPECT_EQ(mkv_code(film.file()), "HR0361");
  film.scale = 1000;
  film.more_of_track = element(mkv::kTrackTimestampScale, real(2));
  EXPECT_EQ(mkv_code(film.file()), "HR0363");
}

TEST(MatroskaFile, IgnoresOtherTracks) {
  Film film = film_of(
      cluster(0, element(mkv::kSimpleBlock, block(2, 0, 0x80, {9})) + simple(7, true, {1})));
  Film audio;
  audio.type = 2;
  film.other_tracks = audio.track();
  EXPECT_EQ(times_of(mkv_track(film.file())), "7K");
  film.type = 17;
  EXPECT_EQ(mkv_code(film.file()), "HR0364");
}

TEST(MatroskaFile, HasColorsAndRotation) {
  Film film = short_film();
  film.more_of_video =
      element(mkv::kColor, element(mkv::kMatrixCoefficients, 1) + element(mkv::kRange, 2) +
                               element(mkv::kTransferCharacteristics, 16));
  EXPECT_EQ(mkv_track(film.file()).color,
            (VideoColor{ColorMatrix::kBT709, ColorRange::kFull, ColorTransfer::kPQ}));
  for (const auto& [roll, turns] :
       std::vector<std::pair<double, int>>{{-90, 1}, {90, 3}, {180, 2}, {-180, 2}, {0, 0}}) {
    film.more_of_video = element(mkv::kProjection, element(mkv::kPoseRoll, real(roll)));
    EXPECT_EQ(mkv_track(film.file()).quarter_turns, turns) << roll;
  }
  for (const double roll : {45.0, 1e300, std::nan("")}) {
    film.more_of_video = element(mkv::kProjection, element(mkv::kPoseRoll, real(roll)));
    EXPECT_EQ(mkv_code(film.file()), "HR0363") << roll;
  }
  film.more_of_video = element(mkv::kProjection, element(mkv::kPoseYaw, real(180)));
  EXPECT_EQ(mkv_code(film.file()), "HR0363");  // mirrored
}

// VP8 has pictures that are never shown, in packets of their own.
TEST(MatroskaFile, HidesInvisibleVp8Frames) {
  Film film = film_of(
      cluster(0, simple(0, true, {0x10}) + simple(39, false, {0x01}) + simple(40, false, {0x11})));
  film.codec = "V_VP8";
  EXPECT_EQ(mkv_track(film.file()).frames, (std::vector<uint32_t>{0, 2}));
  // VP9: shown, hidden, hidden followed by one that is shown, an earlier one shown again.
  film.codec = "V_VP9";
  film.clusters = cluster(0, simple(0, true, {0x82, 0}) + simple(1, false, {0x84, 0}) +
                                 simple(2, false, {0x84, 0, 0xC1}) + simple(3, false, {0x88, 0}));
  EXPECT_EQ(mkv_track(film.file()).frames, (std::vector<uint32_t>{0, 2, 3}));
}

TEST(MatroskaFile, IsRefusedWithTheReasonIfUnsupported) {
  const auto why = [](const Film& film) { return read_video(film.file()).error().message(); };
  Film film = short_film();
  film.codec = "V_MS/VFW/FOURCC";
  EXPECT_EQ(mkv_code(film.file()), "HR0363");
  EXPECT_NE(why(film).find("-c copy"), std::string::npos);
  film.codec = "V_THEORA";
  EXPECT_NE(why(film).find("\"V_THEORA\""), std::string::npos);
  film = short_film();
  film.parameters.clear();
  EXPECT_EQ(mkv_code(film.file()), "HR0361");
  film = short_film();
  film.more_of_track =
      element(mkv::kContentEncodings,
              element(mkv::kContentEncoding, element(mkv::kContentEncodingType, 1)));
  EXPECT_NE(why(film).find("encrypted"), std::string::npos);
  film.more_of_track = element(mkv::kContentEncodings, element(mkv::kContentEncoding, Bytes{}));
  EXPECT_NE(why(film).find("doubly compressed"), std::string::npos);
  film = short_film();
  film.more_of_video = element(mkv::kAlphaMode, 1);
  EXPECT_NE(why(film).find("alpha"), std::string::npos);
  film = film_of(cluster(0, element(mkv::kSimpleBlock, block(1, 0, 0x82, {1, 1, 1}))));
  EXPECT_NE(why(film).find("several frames"), std::string::npos);
  EXPECT_EQ(mkv_code(film_of({}).file()), "HR0364");
  const Bytes twice = short_film().file() + short_film().file();
  EXPECT_EQ(mkv_code(twice), "HR0363");
}

TEST(MatroskaFile, LosesNoPacketsToElementsOfUnknownLength) {
  const Bytes group = endless(mkv::kBlockGroup, element(mkv::kBlock, block(1, 5, 0, {7})));
  const Bytes open = endless(mkv::kSimpleBlock, block(1, 5, 0, {7}));
  for (const Bytes& endless_one : {group, open, endless(0x1254C367, {})}) {  // Tags
    const Film film = film_of(cluster(0, simple(0, true, {0})) + endless_one +
                              cluster(10, simple(0, false, {1})));
    EXPECT_EQ(mkv_code(film.file()), "HR0361");
  }
}

TEST(MatroskaFile, WithPacketsOutsideItsSegmentIsRefused) {
  EXPECT_EQ(mkv_code(film_of({}).file() + short_film().clusters), "HR0364");
  const Bytes in_front = element(mkv::kHeader, Bytes{}) + short_film().clusters;
  EXPECT_EQ(mkv_code(in_front + film_of({}).file()), "HR0364");
  EXPECT_EQ(mkv_code(in_front), "HR0362");
}

TEST(MatroskaFile, TruncatedOrDamagedIsAnErrorOrATrackWithinTheFile) {
  const Bytes whole = short_film().file();
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

}  // namespace
}  // namespace headrace
