// SPDX-License-Identifier: Apache-2.0
// Videos made by encoders and muxers: packets as reported by ffprobe, and frames as decoded
// sequentially by ffmpeg.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "headrace/base/sweep_test_width.h"
#include "headrace/codecs/media/media_process.h"
#include "headrace/codecs/video/ffmpeg_test_tool.h"
#include "headrace/codecs/video/video_file.h"
#include "headrace/codecs/video/video_test_streams.h"

namespace headrace {
namespace {

using video_test::ProbedPacket;

struct GeneratedVideo {
  const char* name;
  const char* from;  // an earlier file, or null: from a generator
  const char* how;
};
// 2 s at 25 frames per second, with a key frame every 12.
constexpr GeneratedVideo kGeneratedVideos[] = {
    {"b_frames.mp4", nullptr, "-c:v libx264 -g 12 -bf 3"},
    {"pyramid.mp4", nullptr, "-c:v libx264 -x264-params keyint=25:bframes=8:b-adapt=0"},
    {"open.mp4", nullptr, "-c:v libx264 -x264-params keyint=12:open-gop=1:bframes=3"},
    {"refresh.mp4", nullptr, "-c:v libx264 -x264-params keyint=12:intra-refresh=1"},
    {"interlaced.mp4", nullptr, "-c:v libx264 -g 12 -x264-params interlaced=1"},
    {"slices.mp4", nullptr, "-c:v libx264 -g 12 -x264-params slices=3"},
    {"changing.mp4", nullptr,
     "-vf select='not(mod(n\\,3))+not(mod(n\\,7))' -vsync vfr -c:v libx264"},
    {"hevc.mp4", nullptr, "-c:v libx265 -x265-params log-level=none:keyint=12:open-gop=1:pools=1"},
    {"layers.mp4", nullptr,
     "-c:v libx265 -x265-params log-level=none:keyint=12:temporal-layers=1:bframes=4:pools=1"},
    {"vp9.webm", nullptr, "-c:v libvpx-vp9 -g 12 -cpu-used 8 -deadline realtime"},
    {"svt.mp4", nullptr, "-c:v libsvtav1 -preset 10 -g 24"},
    {"aom.mkv", nullptr, "-c:v libaom-av1 -cpu-used 8 -g 24 -b:v 100k"},
    {"mpeg4.mp4", nullptr, "-c:v mpeg4 -g 12 -bf 2"},
    {"mjpeg.mov", nullptr, "-c:v mjpeg -pix_fmt yuvj420p"},
    {"late.mp4", "b_frames.mp4", "-output_ts_offset 1.25 -c copy"},
    {"cut.mp4", "b_frames.mp4", "-ss 0.7 -c copy"},
    {"open_cut.mp4", "open.mp4", "-ss 0.7 -c copy"},
    {"no_edits.mp4", "b_frames.mp4", "-c copy -use_editlist 0"},
    {"negative.mp4", "b_frames.mp4", "-c copy -movflags negative_cts_offsets"},
    {"fragments.mp4", "b_frames.mp4", "-c copy -movflags frag_keyframe+empty_moov"},
    {"more_fragments.mp4", "b_frames.mp4", "-c copy -movflags frag_keyframe -frag_duration 300000"},
    {"dash.mp4", "open.mp4", "-c copy -movflags dash -frag_duration 300000"},
    {"front.mp4", "open.mp4", "-c copy -movflags faststart"},
    {"open.mkv", "open.mp4", "-c copy"},
    {"live.mkv", "b_frames.mp4", "-c copy -live 1"},
    {"clusters.mkv", "hevc.mp4", "-c copy -cluster_time_limit 300"},
    {"late.mkv", "b_frames.mp4", "-output_ts_offset 0.5 -c copy"},
    {"mpeg4.mkv", "mpeg4.mp4", "-c copy"},
    {"cropped.mp4", "b_frames.mp4",
     "-c copy -bsf:v h264_metadata=crop_left=10:crop_right=6:crop_top=4:crop_bottom=2 -f matroska "
     "- | ffmpeg -v quiet -y -i - -c copy"},
};

class GeneratedVideos : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!video_test::has_ffmpeg()) return;
    folder_ =
        std::filesystem::temp_directory_path() / ("generated_videos_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    for (const GeneratedVideo& made : kGeneratedVideos) {
      const std::string input =
          made.from ? "-i '" + (folder_ / made.from).string() + "'"
                    : "-f lavfi -i testsrc2=size=96x64:rate=25:duration=2 -pix_fmt yuv420p";
      // If an encoder is missing, its file is skipped.
      const std::string command = "ffmpeg -v quiet -nostdin -y " + input + " -threads 1 " +
                                  made.how + " '" + (folder_ / made.name).string() + "'";
      if (std::system(command.c_str()) == 0) made_.push_back(folder_ / made.name);
    }
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder_); }
  void SetUp() override {
    if (made_.empty()) GTEST_SKIP() << "no ffmpeg: apt-get install ffmpeg";
  }
  inline static std::filesystem::path folder_;
  inline static std::vector<std::filesystem::path> made_;
};

TEST_F(GeneratedVideos, HaveThePacketsThatFfprobeFinds) {
  EXPECT_GT(made_.size(), 5u);
  for (const std::filesystem::path& file : made_) {
    SCOPED_TRACE(file.filename());
    const std::vector<uint8_t> bytes = video_test::bytes_of(file);
    const Result<VideoTrack> track = read_video(bytes);
    ASSERT_TRUE(track) << track.error().message();
    const std::vector<ProbedPacket> probed = video_test::probed_packets(file);
    ASSERT_EQ(track->packets.size(), probed.size());
    const bool is_mkv = file.extension() == ".mkv" || file.extension() == ".webm";
    std::vector<bool> shown(probed.size());
    for (const uint32_t frame : track->frames) shown[frame] = true;
    for (size_t i = 0; i < probed.size(); ++i) {
      const MediaPacket& packet = track->packets[i];
      EXPECT_EQ(packet.size, probed[i].size) << i;
      EXPECT_EQ(packet.key, probed[i].key) << i;
      EXPECT_EQ(shown[i], !probed[i].discarded) << i;
      EXPECT_EQ(packet.offset, is_mkv ? packet.offset : probed[i].offset) << i;
      // If an edit list begins in the middle of a frame, libavformat shifts all times slightly.
      EXPECT_EQ(packet.pts - track->packets[0].pts, probed[i].pts - probed[0].pts) << i;
    }
  }
}

TEST_F(GeneratedVideos, GiveAnyFramesAsASequentialDecodeDoes) {
  if (!std::filesystem::exists(media_program())) GTEST_SKIP() << "no headrace-av";
  auto decoder = make_video_decoder({});
  ASSERT_TRUE(decoder);
  std::mt19937 random(1);
  for (const std::filesystem::path& file : made_) {
    SCOPED_TRACE(file.filename());
    const std::vector<uint8_t> bytes = video_test::bytes_of(file);
    const Result<VideoTrack> track = read_video(bytes);
    ASSERT_TRUE(track);
    const std::vector<uint32_t> expected = video_test::ffmpeg_hashes(file);
    ASSERT_EQ(track->frames.size(), expected.size());
    for (int round = 0; round < 20 / kSweepStep; ++round) {
      const size_t stride = 1 + random() % 5;
      std::vector<uint32_t> wanted;
      for (size_t f = random() % expected.size(); f < expected.size(); f += stride) {
        if (round % 2 == 0 || random() % 3 == 0) wanted.push_back(static_cast<uint32_t>(f));
      }
      video_test::Hashes sink;
      const Result<void> good =
          (*decoder)->decode(*track, bytes, plan_frames(*track, bytes, wanted), sink);
      ASSERT_TRUE(good) << good.error().message();
      ASSERT_EQ(sink.hashes.size(), wanted.size());
      for (size_t i = 0; i < wanted.size(); ++i) {
        EXPECT_EQ(sink.hashes[i], expected[wanted[sink.order[i]]]) << "frame " << wanted[i];
      }
    }
  }
}

// Decodes consecutive clips, each before or after the last one, with clips of other and of damaged
// files in between, all with one decoder.
TEST_F(GeneratedVideos, GiveTheSameFramesRegardlessOfEarlierDecodes) {
  if (!std::filesystem::exists(media_program())) GTEST_SKIP() << "no headrace-av";
  auto decoder = make_video_decoder({});
  ASSERT_TRUE(decoder);
  std::mt19937 random(5);
  int damaged = 0;
  for (const std::filesystem::path& file : made_) {
    SCOPED_TRACE(file.filename());
    const std::vector<uint8_t> bytes = video_test::bytes_of(file);
    const Result<VideoTrack> track = read_video(bytes);
    ASSERT_TRUE(track);
    const std::vector<uint32_t> expected = video_test::ffmpeg_hashes(file);
    ASSERT_EQ(track->frames.size(), expected.size());
    const auto clip_at = [&](size_t begin) {
      std::vector<uint32_t> wanted;
      const size_t stride = 1 + random() % 3;
      for (size_t f = begin; f < expected.size() && wanted.size() < 1 + random() % 5; f += stride) {
        wanted.push_back(static_cast<uint32_t>(f));
      }
      return wanted;
    };
    size_t begin = 0;
    for (int round = 0; round < 60 / kSweepStep; ++round) {
      begin += random() % 7;
      if (begin >= expected.size()) begin = random() % expected.size();
      const std::vector<uint32_t> wanted = clip_at(begin);
      const FramePlan plan = plan_frames(*track, bytes, wanted);
      if (random() % 8 == 0) {  // the same clip of a file with a few bytes changed
        std::vector<uint8_t> other = bytes;
        for (int i = 0; i < 3; ++i) {
          const MediaPacket& packet =
              track->packets[plan.feeds[random() % plan.feeds.size()].packet];
          other[size_t(packet.offset) + random() % packet.size] ^= uint8_t(1 + random() % 255);
        }
        video_test::Hashes ignored;
        damaged += !(*decoder)->decode(*track, other, plan_frames(*track, other, wanted), ignored);
      }
      video_test::Hashes sink;
      const Result<void> good = (*decoder)->decode(*track, bytes, plan, sink);
      ASSERT_TRUE(good) << good.error().message();
      ASSERT_EQ(sink.hashes.size(), wanted.size());
      for (size_t i = 0; i < wanted.size(); ++i) {
        EXPECT_EQ(sink.hashes[i], expected[wanted[sink.order[i]]]) << "frame " << wanted[i];
      }
      begin = wanted.back();
    }
  }
  EXPECT_GT(damaged, 10 / kSweepStep);
}

// A decoder that continues reports the same damage as one opened for the file.
TEST_F(GeneratedVideos, ReportTheSameDamageInAContinuingDecoder) {
  if (!std::filesystem::exists(media_program())) GTEST_SKIP() << "no headrace-av";
  auto going_on = make_video_decoder({});
  ASSERT_TRUE(going_on);
  auto other = make_video_decoder({});
  const std::vector<uint8_t> another = video_test::bytes_of(made_.back());
  const Result<VideoTrack> another_track = read_video(another);
  ASSERT_TRUE(other && another_track);
  std::mt19937 random(9);
  int refused = 0, alike = 0;
  for (const std::filesystem::path& file : made_) {
    SCOPED_TRACE(file.filename());
    const std::vector<uint8_t> good_bytes = video_test::bytes_of(file);
    const Result<VideoTrack> track = read_video(good_bytes);
    ASSERT_TRUE(track);
    for (int damage = 0; damage < 6; damage += kSweepStep) {
      std::vector<uint8_t> bytes = good_bytes;
      const MediaPacket& packet = track->packets[random() % track->packets.size()];
      bytes[size_t(packet.offset) + random() % packet.size] ^= uint8_t(1 + random() % 255);
      const auto frames = static_cast<uint32_t>(track->frames.size());
      for (uint32_t begin = 0; begin + 3 < frames; begin += 4) {
        const std::vector<uint32_t> wanted{begin, begin + 1, begin + 3};
        const FramePlan plan = plan_frames(*track, bytes, wanted);
        video_test::Hashes by_one, by_other, ignored;
        const Result<void> one = (*going_on)->decode(*track, bytes, plan, by_one);
        const std::vector<uint32_t> first{0};  // forces it to reopen its decoder
        (void)(*other)->decode(*another_track, another, plan_frames(*another_track, another, first),
                               ignored);
        const Result<void> two = (*other)->decode(*track, bytes, plan, by_other);
        ASSERT_EQ(bool(one), bool(two))
            << begin << ": " << (one ? two.error() : one.error()).message();
        if (one) {
          // With damaged files they may come in a different order.
          std::map<size_t, uint32_t> frames_of_one, frames_of_other;
          for (size_t i = 0; i < wanted.size(); ++i) {
            frames_of_one[by_one.order.at(i)] = by_one.hashes.at(i);
            frames_of_other[by_other.order.at(i)] = by_other.hashes.at(i);
          }
          ASSERT_EQ(frames_of_one, frames_of_other) << begin;
          ++alike;
        } else {
          ++refused;
        }
      }
    }
  }
  EXPECT_GT(refused, 20 / kSweepStep);
  EXPECT_GT(alike, 20 / kSweepStep);
}

}  // namespace
}  // namespace headrace
