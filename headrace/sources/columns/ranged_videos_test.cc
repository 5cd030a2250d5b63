// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/columns/ranged_videos.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "headrace/base/longer_test_limits.h"
#include "headrace/codecs/media/mp4_test_boxes.h"
#include "headrace/codecs/video/frame_ranges.h"
#include "headrace/codecs/video/frame_times.h"
#include "headrace/sources/columns/columns.h"
#include "headrace/storage/memory_files.h"
#include "headrace/storage/read_deadline.h"
#include "headrace/storage/staged_reads.h"

namespace headrace {
namespace ranged_videos_test {

using mp4_test::Bytes;

constexpr size_t kPacket = 3000, kGop = 5;
constexpr int kPackets = 400;
constexpr double kFps = 30;

// Packet i is kPacket bytes of the value i, every kGop-th is a key frame.
Bytes movie_file(bool moov_first) {
  mp4_test::Movie movie;
  movie.moov_first = moov_first;
  for (int i = 0; i < kPackets; ++i) {
    movie.samples.push_back(
        {.content = Bytes(kPacket, static_cast<uint8_t>(i)), .key = i % int(kGop) == 0});
  }
  return movie.file();
}

ChooseFrames frames_at(const std::vector<double>& seconds) {
  return [seconds](const VideoTrack& track) {
    std::vector<uint32_t> frames;
    for (const double each : seconds) frames.push_back(uint32_t(nearest_frame(track, each)));
    return std::optional(frames);
  };
}

using Files = RangedVideos::Files;

struct Robot {
  explicit Robot(const Bytes& file, MemoryBehavior behavior = {}, Files files = Files::kShared)
      : volume("robot", std::move(behavior)), path(volume.write("top.mp4", file)), videos(files) {}
  Result<RangedVideo> read(const std::vector<double>& seconds, uint64_t most = UINT64_MAX) const {
    return videos.read(path, frames_at(seconds), most);
  }
  std::string code_of_read() const {
    const Result<RangedVideo> got = read({0});
    return got ? "good" : std::string(got.error().code->id);
  }

  MemoryVolume volume;
  const std::string path;
  RangedVideos videos;
};

void expect_packets(const RangedVideo& video, size_t first, size_t count) {
  for (size_t i = first; i < first + count; ++i) {
    const MediaPacket& packet = video.track->packets[i];
    const auto held = video.file->held(static_cast<uint64_t>(packet.offset), packet.size);
    ASSERT_TRUE(held) << "packet " << i;
    EXPECT_TRUE(std::ranges::all_of(*held, [&](uint8_t b) { return b == uint8_t(i); }));
  }
}

TEST(RangedVideosOfARobot, ReadTheTableOnceAndThenOnlyTheFrames) {
  for (const bool moov_first : {true, false}) {
    const Robot robot(movie_file(moov_first));
    const Result<RangedVideo> first = robot.read({103 / kFps, 101 / kFps});
    ASSERT_TRUE(first) << first.error().message();
    expect_packets(*first, 100, kGop);
    expect_packets(*first, 0, 1);  // which decoders of H.264 inspect
    EXPECT_EQ(first->file->held_bytes(), (kGop + 1) * kPacket);
    EXPECT_LE(robot.volume.bytes_sent(), 80'000u) << "of 1.2 MB, with the table";
    const uint64_t before = robot.volume.bytes_sent();
    const int64_t requests = robot.volume.requests();
    for (const int frame : {200, 203, 399}) {
      const Result<RangedVideo> next = robot.read({frame / kFps});
      ASSERT_TRUE(next) << next.error().message();
      expect_packets(*next, static_cast<size_t>(frame) / kGop * kGop, kGop);
    }
    EXPECT_EQ(robot.volume.bytes_sent() - before, 3 * kGop * kPacket);
    EXPECT_EQ(robot.volume.requests() - requests, 3);
  }
}

TEST(RangedVideosOfARobot, KnowTheirPiecesOnceTheTableIsThere) {
  const std::vector<double> seconds = {11 / kFps, 390 / kFps};
  EXPECT_TRUE(holds_with_longer_limits({0.005, 0.5, 10}, [&](double latency_seconds) {
    const Robot slow(movie_file(false), {.latency_seconds = latency_seconds});
    std::vector<FilePiece> none;
    const bool is_there = slow.videos.prepare(slow.path, /*wait=*/false);
    (void)slow.videos.add_pieces(slow.path, frames_at(seconds), none);
    return std::string(is_there || !none.empty() ? "the table came at once" : "");
  }));
  const Robot robot(movie_file(false));
  std::vector<FilePiece> pieces;
  EXPECT_TRUE(robot.videos.prepare(robot.path, /*wait=*/true));
  EXPECT_TRUE(robot.videos.prepare(robot.path, /*wait=*/false));
  (void)robot.videos.add_pieces(robot.path, frames_at(seconds), pieces);
  ASSERT_EQ(pieces.size(), 2u);
  std::vector<StagedPiece> staged;
  for (const FilePiece& piece : pieces) {
    EXPECT_EQ(piece.bytes, kGop * kPacket);
    EXPECT_TRUE(piece.shared);
    EXPECT_TRUE(piece.known);
    auto memory = std::make_shared<Buffer>(piece.bytes);
    staged.push_back({.piece = piece, .bytes = memory->bytes(), .memory = memory});
  }
  const int64_t before = robot.volume.requests();
  const StagedReads reads(staged);
  const Result<RangedVideo> video = robot.read({11 / kFps, 390 / kFps});
  ASSERT_TRUE(video);
  EXPECT_EQ(video->file->held(pieces[1].offset, 1)->data(), staged[1].memory->data());
  EXPECT_EQ(robot.volume.requests(), before) << "all of it was staged";
}

TEST(RangedVideosOfARobot, ReadATableOnceForAllThreads) {
  const Robot robot(movie_file(false), {.latency_seconds = 0.02});
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { EXPECT_TRUE(robot.videos.prepare(robot.path, true)); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(robot.volume.requests(), 5);
}

TEST(RangedVideosOfARobot, RememberThatAFileIsDamaged) {
  Bytes file = movie_file(true);
  file.resize(file.size() / 2);
  {
    const Robot robot(file);
    EXPECT_EQ(robot.code_of_read(), "HR0362");
    const int64_t requests = robot.volume.requests();
    EXPECT_TRUE(robot.videos.prepare(robot.path, false)) << "nothing is to be waited for";
    EXPECT_EQ(robot.code_of_read(), "HR0362");
    EXPECT_EQ(robot.volume.requests(), requests);
  }
  for (size_t cut : {0u, 1u, 20u, 500u, 5000u}) {
    file.resize(cut);
    const Robot shorter(file);
    EXPECT_NE(shorter.code_of_read(), "good");
  }
}

TEST(RangedVideosOfARobot, TryAgainAfterAnErrorOfTheStorage) {
  std::atomic<bool> fails{true};
  const Robot robot(movie_file(true), {.fault = [&](const MemoryRequest&) {
                      return MemoryFault{.error_number = fails ? EMFILE : 0};
                    }});
  EXPECT_TRUE(robot.videos.prepare(robot.path, /*wait=*/true));
  const int64_t requests = robot.volume.requests();
  EXPECT_EQ(robot.code_of_read(), "HR0207");
  EXPECT_EQ(robot.volume.requests(), requests) << "that of the table";
  fails = false;
  EXPECT_EQ(robot.code_of_read(), "good");
}

TEST(RangedVideosOfARobot, OfOneRecordAreWithinItsLimitTogether) {
  Robot robot(movie_file(true));
  static const double times[] = {0, 100 / kFps};
  const auto camera = [&] {
    return PathColumn{.paths = {robot.path}, .which = {0, 0}, .times = "times"};
  };
  const SourcePtr source = records({{"times", ArrayColumn{times, DType::kFloat64, 2, {}, {}}},
                                    {"left", camera(), FieldKind::kVideo},
                                    {"right", camera(), FieldKind::kVideo}});
  const std::vector<bool> wanted(3, true), by_range{false, true, true};
  const auto code_of = [&](size_t limit) {
    const int64_t record = 1;
    RecordData out;
    out.by_range = &by_range;
    out.max_bytes = limit;
    source->read({&record, 1}, wanted, {&out, 1});
    return out.result ? "good" : std::string(out.result.error().code->id);
  };
  EXPECT_EQ(code_of(SIZE_MAX), "good");
  EXPECT_EQ(code_of(2 * (kGop + 1) * kPacket), "good");
  EXPECT_EQ(code_of(kGop * kPacket), "HR0206") << "enough for one";
  EXPECT_EQ(code_of(kPacket), "HR0206");
}

TEST(RangedVideosOfARobot, NoticeAFileThatWasReplaced) {
  Robot robot(movie_file(true));
  EXPECT_EQ(robot.code_of_read(), "good");
  Bytes other = movie_file(true);
  other.push_back(0);
  robot.volume.write("top.mp4", other);
  EXPECT_EQ(robot.code_of_read(), "HR0208");
}

TEST(RangedVideosOfARobot, AreReadWithinTheLimits) {
  EXPECT_TRUE(holds_with_longer_limits({0.2, 2, 20}, [](double latency_seconds) {
    const Robot slow(movie_file(true), {.latency_seconds = latency_seconds});
    const ReadDeadline deadline(latency_seconds / 4);
    const std::string code = slow.code_of_read();
    return code == "HR0228" ? std::string() : code;
  }));
  const Robot robot(movie_file(true));
  const Result<RangedVideo> large = robot.read({0, 1, 2}, 2 * kGop * kPacket);
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code->id, "HR0206");
}

// A separate video file, of which each record takes a clip.
struct Clips : Robot {
  explicit Clips(const Bytes& file, MemoryBehavior behavior = {})
      : Robot(file, std::move(behavior), Files::kSeparate) {}
  VideoReading reading(const std::vector<double>& seconds = {1}) const {
    const Result<RangedVideo> got = read(seconds);
    EXPECT_TRUE(got) << got.error().message();
    EXPECT_EQ(got->file != nullptr, got->reading == VideoReading::kByRange);
    return got->reading;
  }
};

TEST(SeparateVideos, AreReadByRange) {
  const Clips clips(movie_file(false));
  EXPECT_TRUE(clips.videos.prepare(clips.path, /*wait=*/true));
  std::vector<FilePiece> pieces;
  EXPECT_EQ(clips.videos.add_pieces(clips.path, frames_at({1}), pieces), VideoReading::kByRange);
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].bytes, kGop * kPacket);
  EXPECT_EQ(clips.reading(), VideoReading::kByRange);
  EXPECT_LE(clips.volume.bytes_sent(), 80'000u);
}

TEST(SeparateVideos, AreReadWholeWhereThatIsCheaper) {
  mp4_test::Movie movie;
  movie.samples.push_back({.content = Bytes(kPacket, 1), .key = true});
  {
    const Clips small(movie.file());
    EXPECT_EQ(small.reading(), VideoReading::kCheaper);
    const int64_t requests = small.volume.requests();
    EXPECT_TRUE(small.videos.prepare(small.path, /*wait=*/false));
    std::vector<FilePiece> pieces;
    EXPECT_EQ(small.videos.add_pieces(small.path, frames_at({0}), pieces), VideoReading::kCheaper);
    EXPECT_EQ(small.volume.requests(), requests) << "it is remembered";
  }
  std::vector<double> most;
  for (int i = 0; i < kPackets * 2 / 3; ++i) most.push_back(i / kFps);
  const Clips clips(movie_file(true));
  EXPECT_EQ(clips.reading(most), VideoReading::kCheaper);
  EXPECT_EQ(clips.reading({0}), VideoReading::kByRange);
}

TEST(SeparateVideos, AreReadWholeWithoutATable) {
  Bytes cut = movie_file(true);
  cut.resize(cut.size() / 2);
  const Bytes matroska = [] {
    Bytes out(1'000'000, 0);
    constexpr uint8_t kBegin[] = {0x1A, 0x45, 0xDF, 0xA3};
    std::ranges::copy(kBegin, out.begin());
    return out;
  }();
  for (const Bytes& file : {cut, matroska, Bytes(1'000'000, 0)}) {
    const Clips clips(file);
    EXPECT_EQ(clips.reading(), VideoReading::kNoTable);
    EXPECT_LE(clips.volume.bytes_sent(), 400'000u);
    const int64_t requests = clips.volume.requests();
    EXPECT_EQ(clips.reading(), VideoReading::kNoTable);
    EXPECT_EQ(clips.volume.requests(), requests);
  }
}

TEST(SeparateVideos, AreReadWholeIfTheirFramesAreUnknown) {
  const Clips clips(movie_file(true));
  const ChooseFrames none = [](const VideoTrack&) { return std::nullopt; };
  const Result<RangedVideo> got = clips.videos.read(clips.path, none, UINT64_MAX);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->reading, VideoReading::kNoTable);
}

TEST(SeparateVideos, AreReadWholeOnceTheirTableWasWrong) {
  const Clips clips(movie_file(true));
  const Result<RangedVideo> video = clips.read({0});
  ASSERT_TRUE(video && video->file);
  const int64_t requests = clips.volume.requests();
  Bytes packet(kPacket);
  for (size_t i = 50; i < 250;
       ++i) {  // as if each were needed, and known only after the one before
    const auto offset = static_cast<uint64_t>(video->track->packets[i].offset);
    ASSERT_TRUE(video->file->read(offset, packet));
    EXPECT_TRUE(std::ranges::all_of(packet, [&](uint8_t b) { return b == uint8_t(i); }));
  }
  EXPECT_EQ(clips.volume.requests() - requests, 17);
  EXPECT_EQ(clips.reading(), VideoReading::kNoTable);
}

TEST(SeparateVideos, ThatAreReplacedAreAnError) {
  Clips clips(movie_file(true));
  EXPECT_EQ(clips.reading(), VideoReading::kByRange);
  Bytes other = movie_file(true);
  other.push_back(0);
  clips.volume.write("top.mp4", other);
  EXPECT_EQ(clips.code_of_read(), "HR0208");
}

}  // namespace ranged_videos_test
}  // namespace headrace
