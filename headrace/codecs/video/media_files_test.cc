// SPDX-License-Identifier: Apache-2.0
// Real files, frame by frame compared with `ffmpeg -f framehash`: the index gives the packets, the
// process decodes them, and frame i is frame i of a sequential decode.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <random>

#include "headrace/base/sweep_test_width.h"
#include "headrace/codecs/media/media_process.h"
#include "headrace/codecs/video/ffmpeg_test_tool.h"
#include "headrace/codecs/video/video_file.h"
#include "headrace/codecs/video/video_test_streams.h"

namespace headrace {
namespace {

using video_test::bytes_of;
using video_test::ffmpeg_hashes;
using video_test::Hashes;

// For all frames of files that are not too slow.
constexpr int64_t kMaxPixels = int64_t{300} << 20;

std::vector<std::filesystem::path> files() {
  std::vector<std::filesystem::path> out;
  const char* const data = std::getenv("HEADRACE_TEST_DATA");
  if (!data || !std::filesystem::is_directory(std::filesystem::path(data) / "video")) return out;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::filesystem::path(data) / "video")) {
    if (entry.is_regular_file()) out.push_back(entry.path());
  }
  std::ranges::sort(out);
  return out;
}

TEST(MediaFiles, EveryFrameEqualsASequentialDecode) {
  if (!std::filesystem::exists(media_program())) GTEST_SKIP() << "no headrace-av";
  if (files().empty()) GTEST_SKIP() << "HEADRACE_TEST_DATA has no video";
  if (!video_test::has_ffmpeg()) GTEST_SKIP() << "no ffmpeg";
  auto decoder = make_video_decoder({});
  ASSERT_TRUE(decoder);
  std::mt19937 random(3);
  size_t decoded = 0, frames = 0;
  for (const auto& file : files()) {
    SCOPED_TRACE(file.string());
    const std::vector<uint8_t> bytes = bytes_of(file);
    const Result<VideoTrack> track = read_video(bytes);
    if (!track || track->codec > VideoCodec::kMJPEG) continue;
    const int64_t pixels = int64_t{track->width} * track->height * int64_t(track->frames.size());
    if (pixels > kMaxPixels) continue;
    const std::vector<uint32_t> expected = ffmpeg_hashes(file);
    EXPECT_EQ(track->frames.size(), expected.size());
    if (track->frames.size() != expected.size()) continue;
    // All frames if there are few, and a few in the pattern of clips.
    for (int clip = pixels < kMaxPixels / 10 ? 0 : 1; clip < 4; clip += kSweepStep) {
      std::vector<uint32_t> wanted(expected.size());
      std::iota(wanted.begin(), wanted.end(), 0U);
      if (clip > 0) {
        std::ranges::shuffle(wanted, random);
        wanted.resize(std::min<size_t>(wanted.size(), 1 + random() % 8));
        std::ranges::sort(wanted);
      }
      Hashes sink;
      const Result<void> good =
          (*decoder)->decode(*track, bytes, plan_frames(*track, bytes, wanted), sink);
      ASSERT_TRUE(good) << good.error().message();
      ASSERT_EQ(sink.hashes.size(), wanted.size());
      for (size_t i = 0; i < wanted.size(); ++i) {
        EXPECT_EQ(sink.hashes[i], expected[wanted[sink.order[i]]]) << "frame " << wanted[i];
      }
      frames += wanted.size();
    }
    ++decoded;
  }
  std::printf("%zu files, %zu frames\n", decoded, frames);
  EXPECT_GE(decoded, 20U);
}

}  // namespace
}  // namespace headrace
