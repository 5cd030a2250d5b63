// SPDX-License-Identifier: Apache-2.0
// Reading only ranges of a file gives the same video, and the same errors, as its whole bytes.
#include "headrace/codecs/video/video_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "headrace/codecs/video/ffmpeg_test_tool.h"
#include "headrace/codecs/video/frame_plan.h"
#include "headrace/codecs/video/video_index.h"
#include "headrace/storage/file.h"

namespace headrace {
namespace {

// A reader's result, and a plan of a few frames.
std::string result_of(const ByteRanges& file) {
  const Result<VideoTrack> track = read_video(file);
  if (!track) return std::string(track.error().code->id) + " " + track.error().what;
  std::string out = std::to_string(track->packets.size()) + " ";
  if (has_video_index(*track)) {
    const std::vector<uint8_t> index = video_index_of(*track);
    out.append(index.begin(), index.end());
  }
  std::vector<uint32_t> wanted;
  const size_t step = std::max<size_t>(1, track->frames.size() / 5);
  for (size_t i = 0; i < track->frames.size(); i += step) wanted.push_back(uint32_t(i));
  for (const Feed& feed : plan_frames(*track, file, wanted).feeds) {
    out += std::to_string(feed.packet) + (feed.restart ? "!" : " ");
  }
  return out;
}

TEST(VideoFile, ReadByRangeEqualsTheWholeFile) {
  const char* const data = std::getenv("HEADRACE_TEST_DATA");
  const std::filesystem::path folder = std::filesystem::path(data ? data : "") / "video";
  if (!data || !std::filesystem::is_directory(folder)) GTEST_SKIP() << "no HEADRACE_TEST_DATA";
  const std::string path = testing::TempDir() + "video_file_" + std::to_string(::getpid());
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.file_size() > (8 << 20)) continue;
    const std::vector<uint8_t> whole = video_test::bytes_of(entry.path());
    // Whole, and truncated where tables may be.
    for (const size_t bytes : {whole.size(), whole.size() - whole.size() / 7, whole.size() / 2,
                               std::min<size_t>(whole.size(), 1000)}) {
      SCOPED_TRACE(entry.path().string() + ", " + std::to_string(bytes));
      const std::vector<uint8_t> part(whole.begin(), whole.begin() + std::ptrdiff_t(bytes));
      std::ofstream(path, std::ios::binary)
          .write(reinterpret_cast<const char*>(part.data()), std::streamsize(bytes));
      Result<File> file = File::open(path);
      ASSERT_TRUE(file);
      EXPECT_EQ(result_of(ByteRanges(std::make_shared<const File>(std::move(*file)))),
                result_of(part));
    }
    ++files;
  }
  std::filesystem::remove(path);
  EXPECT_GT(files, 10);
}

}  // namespace
}  // namespace headrace
