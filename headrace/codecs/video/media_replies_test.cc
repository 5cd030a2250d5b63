// SPDX-License-Identifier: Apache-2.0
// Programs that replace headrace-av and send arbitrary replies: this test program, under other
// names.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "headrace/base/clock.h"
#include "headrace/codecs/media/media_process.h"
#include "headrace/codecs/video/media_decoder.h"
#include "headrace/codecs/video/video_test_streams.h"

namespace headrace {
namespace {

using media::Reply;
using media::ReplyKind;
using media::Request;
using media::RequestKind;

constexpr uint64_t kFrameBytes = 64 * 1024;
constexpr uint32_t kManyFrames = 5000;

// A valid frame of 64 x 48 samples.
media::Frame good_frame(uint32_t number) {
  media::Frame frame{.number = number, .width = 64, .height = 48, .planes = 3};
  frame.chroma_x = frame.chroma_y = 1;
  frame.bits = 8;
  frame.offset = {0, 16384, 32768};
  frame.stride = {128, 128, 128};
  return frame;
}

void say(const Reply& reply) { (void)!write(media::kSocket, &reply, sizeof reply); }

Request heard() {
  Request request;
  if (read(media::kSocket, &request, sizeof request) != sizeof request) _exit(0);
  return request;
}

// How the program of this name misbehaves when asked to decode.
void run_hostile_program(const std::string& name) {
  Reply reply{.kind = ReplyKind::kFrame, .frame = good_frame(0)};
  if (name == "ends") _exit(1);
  if (name == "crashes") std::abort();
  if (name == "silent") pause();
  if (name == "short") {
    (void)!write(media::kSocket, "x", 1);
  } else if (name == "long") {
    const std::vector<char> much(2 * sizeof reply);
    (void)!write(media::kSocket, much.data(), much.size());
  } else if (name == "cuts") {
    // Truncates the shared memory while the other side uses it.
    if (ftruncate(media::kFrameMemory, 0) == 0 || ftruncate(media::kPacketMemory, 0) == 0) _exit(1);
    say(reply);
  } else if (name == "unasked") {
    reply.frame.number = 1000;
    say(reply);
  } else if (name == "twice") {
    say(reply);
    heard();
    say(reply);
  } else if (name == "deaf") {  // until the socket's buffer is full
    for (reply.frame.number = 0; reply.frame.number < kManyFrames; ++reply.frame.number) say(reply);
    pause();
  } else if (name == "outside") {
    reply.frame.offset[2] = ~uint64_t{0} - 100;
    say(reply);
  } else if (name == "steep") {
    reply.frame.stride[0] = int64_t{1} << 62;
    say(reply);
  } else if (name == "backwards") {
    reply.frame.stride[1] = -128;
    say(reply);
  } else if (name == "large") {
    reply.frame.width = 1 << 30;
    say(reply);
  } else if (name == "planes") {
    reply.frame.planes = 1000;
    say(reply);
  } else if (name == "colors") {
    reply.frame.matrix = 77;
    say(reply);
  } else if (name == "kind") {
    reply.kind = static_cast<ReplyKind>(99);
    say(reply);
  } else if (name == "failure") {
    reply.kind = ReplyKind::kFailed;
    reply.failure = static_cast<media::Failure>(1234);
    reply.name.fill('x');
    say(reply);
  } else if (name == "nothing") {
    say({.kind = ReplyKind::kDecoded});
  }
}

[[noreturn]] void pretend(const std::string& name) {
  say({.kind = ReplyKind::kReady, .version = name == "old" ? 77 : media::kVersion});
  for (;;) {
    const Request request = heard();
    if (request.kind == RequestKind::kDecode) {
      run_hostile_program(name);
    } else {
      say({.kind = ReplyKind::kOpened});
    }
  }
}

// Runs before main(), with the arguments that glibc passes: acts as headrace-av if started as such.
__attribute__((constructor)) void be_program(int count, char** arguments) {
  if (count == 3 && std::strcmp(arguments[2], media::kSandboxed) == 0) {
    pretend(std::filesystem::path(arguments[0]).filename());
  }
}

class MediaReplies : public testing::Test {
 protected:
  // Result of a call to the program of this name.
  Result<void> decode(const std::string& name, double seconds = 600) {
    const auto folder =
        std::filesystem::path(testing::TempDir()) / ("media_replies_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    const std::filesystem::path program = folder / name;
    if (!std::filesystem::exists(program)) {
      std::filesystem::create_symlink(std::filesystem::canonical("/proc/self/exe"), program);
    }
    auto decoder = make_media_decoder({{.seconds = seconds}}, program);
    std::filesystem::remove_all(folder);
    if (!decoder) return std::move(decoder.error());
    video_test::Stream stream = video_test::read_stream("h264");
    while (name == "deaf" && stream.track.frames.size() < kManyFrames) {
      stream.track.frames.push_back(static_cast<uint32_t>(stream.track.packets.size()));
      stream.track.packets.push_back(stream.track.packets.front());
    }
    video_test::Hashes sink;
    return (*decoder)->decode(stream.track, stream.file, video_test::whole(stream.track), sink);
  }
};

class HostileMediaReplies : public MediaReplies, public testing::WithParamInterface<const char*> {};

TEST_P(HostileMediaReplies, AreAnError) {
  const Result<void> result = decode(GetParam(), /*seconds=*/0.5);  // some never answer
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code->id, "HR0369") << result.error().message();
}

INSTANTIATE_TEST_SUITE_P(Programs, HostileMediaReplies,
                         testing::Values("ends", "crashes", "silent", "short", "long", "unasked",
                                         "twice", "deaf", "outside", "steep", "backwards", "planes",
                                         "colors", "kind", "failure"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(MediaReplies, OfOtherSizesAreRefused) {
  const Result<void> result = decode("large");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code->id, "HR0371");
}

TEST_F(MediaReplies, WithoutAFrameNameTheMissingFrame) {
  const Result<void> result = decode("nothing");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code->id, "HR0367");
  EXPECT_NE(result.error().message().find("frame 0, of packet 0"), std::string::npos);
}

TEST_F(MediaReplies, SharedMemoryCannotBeShrunk) {
  const Result<void> result = decode("cuts");  // otherwise reading the frame would crash this
                                               // process
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message().find("by itself"), std::string::npos);
}

TEST_F(MediaReplies, OfAnotherBuildAreRefused) {
  const Result<void> result = decode("old");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code->id, "HR0370");
}

TEST_F(MediaReplies, AbsentProgramNamesItsPackage) {
  const auto decoder = make_media_decoder({}, "/nowhere/headrace-av");
  ASSERT_FALSE(decoder);
  EXPECT_EQ(decoder.error().code->id, "HR0370");
  EXPECT_NE(decoder.error().message().find("libavcodec-dev"), std::string::npos);
}

TEST_F(MediaReplies, ProgramWithoutItsLibraryNamesThePackage) {
  const std::string program = testing::TempDir() + "media_replies_" + std::to_string(getpid());
  std::ofstream(program) << "#!/bin/sh\nexit 127\n";  // the dynamic linker's exit code
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const auto decoder = make_media_decoder({}, program);
  std::filesystem::remove(program);
  ASSERT_FALSE(decoder);
  EXPECT_EQ(decoder.error().code->id, "HR0370");
  EXPECT_NE(decoder.error().message().find(media_package()), std::string::npos);
}

VideoTrack small_track() {
  VideoTrack track;
  track.width = 64;
  track.height = 48;
  return track;
}

TEST(YuvFrameOf, PrefersTheStreamsValuesToTheContainers) {
  const std::vector<uint8_t> memory(kFrameBytes);
  VideoTrack track = small_track();
  track.color = {ColorMatrix::kBT709, ColorRange::kFull, ColorTransfer::kHLG};
  media::Frame frame = good_frame(3);
  EXPECT_EQ(yuv_frame_of(frame, memory, track)->color, track.color);
  frame.matrix = static_cast<uint32_t>(ColorMatrix::kFCC);
  EXPECT_EQ(yuv_frame_of(frame, memory, track)->color,
            (VideoColor{ColorMatrix::kFCC, ColorRange::kFull, ColorTransfer::kHLG}));
  frame.matrix = static_cast<uint32_t>(ColorMatrix::kOther);
  EXPECT_EQ(yuv_frame_of(frame, memory, track).error().code->id, "HR0371");
}

TEST(YuvFrameOf, EndsExactlyWithTheMemory) {
  media::Frame frame = good_frame(0);
  frame.offset[2] = 32768;
  const size_t needed = 32768 + 23 * 128 + 32 + media::kReadPadding;
  const std::vector<uint8_t> memory(needed);
  EXPECT_TRUE(yuv_frame_of(frame, memory, small_track()));
  EXPECT_FALSE(yuv_frame_of(frame, std::span(memory).first(needed - 1), small_track()));
}

}  // namespace
}  // namespace headrace
