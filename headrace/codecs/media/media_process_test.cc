// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/media/media_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <new>
#include <random>
#include <set>
#include <thread>

#include "headrace/base/clock.h"
#include "headrace/base/longer_test_limits.h"
#include "headrace/codecs/video/media_decoder.h"
#include "headrace/codecs/video/video_test_streams.h"

#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitizer = true;  // does not support threads in a forked process
#else
constexpr bool kThreadSanitizer = false;
#endif
extern "C" [[gnu::weak]] void __asan_init();  // the program is compiled with ASan even if this test
                                              // is not
// Sanitizers keep freed memory.
const bool kSanitized = kThreadSanitizer || __asan_init != nullptr;

namespace headrace {
namespace {

using video_test::Hashes;
using video_test::read_stream;
using video_test::Stream;
using video_test::whole;

std::string code(const Result<void>& result) {
  return result ? "good" : std::string(result.error().code->id);
}

size_t entries(const char* folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder),
                                           std::filesystem::directory_iterator()));
}

// Those of Headrace: other tests may run at the same time.
size_t shared_memories() {
  size_t found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    found += entry.path().filename().string().find("headrace") != std::string::npos;
  }
  return found;
}

// The headrace-av processes that `parent` has started, including unreaped ones.
std::set<pid_t> children(pid_t parent = getpid()) {
  std::set<pid_t> out;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "stat");
    std::string number, name, state;
    pid_t by = -1;
    if (file >> number >> name >> state >> by && by == parent && name == "(headrace-av)") {
      out.insert(std::stoi(number));
    }
  }
  return out;
}

std::string status_line(pid_t process, const std::string& key) {
  std::ifstream file("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key + ":", 0) == 0)
      return line.substr(line.find_first_not_of(" \t", key.size() + 1));
  }
  return "";
}

class MediaProcessTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(media_program())) {
      GTEST_SKIP() << "no headrace-av: libavcodec-dev was missing";
    }
    stream_ = read_stream("h264");
    decoder_ = made();
  }
  static std::unique_ptr<VideoDecoder> made(const VideoDecoderOptions& options = {}) {
    Result<std::unique_ptr<VideoDecoder>> decoder = make_video_decoder(options);
    EXPECT_TRUE(decoder) << decoder.error().message();
    return decoder ? std::move(*decoder) : nullptr;
  }
  Result<void> decode(VideoDecoder& decoder, FrameSink& sink) {
    return decoder.decode(stream_.track, stream_.file, whole(stream_.track), sink);
  }
  void expect_exact(VideoDecoder& decoder) {
    Hashes sink;
    const Result<void> good = decode(decoder, sink);
    EXPECT_TRUE(good) << good.error().message();
    EXPECT_EQ(sink.hashes, stream_.hashes);
  }

  Stream stream_;
  std::unique_ptr<VideoDecoder> decoder_;
};

// Calls `act` at the fifth frame.
class Interrupted final : public FrameSink {
 public:
  explicit Interrupted(std::function<void()> act) : act_(std::move(act)) {}
  Result<void> frame(size_t number, const YuvFrame&) override {
    if (number == 5) act_();
    return {};
  }

 private:
  std::function<void()> act_;
};

TEST_F(MediaProcessTest, KilledDuringACallFailsOnlyThatCall) {
  Interrupted sink([] {
    for (const pid_t child : children()) kill(child, SIGKILL);
  });
  const Result<void> result = decode(*decoder_, sink);
  EXPECT_EQ(code(result), "HR0369");
  EXPECT_NE(result.error().message().find("SIGKILL"), std::string::npos)
      << result.error().message();
  expect_exact(*decoder_);
}

TEST_F(MediaProcessTest, KilledBetweenTwoVideosFailsNoCall) {
  expect_exact(*decoder_);
  for (const pid_t child : children()) {
    kill(child, SIGKILL);
    siginfo_t ended{};
    waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
  }
  expect_exact(*decoder_);
}

TEST_F(MediaProcessTest, IsKilledIfItHangs) {
  EXPECT_TRUE(holds_with_longer_limits({0.3, 3, 30}, [&](double seconds) -> std::string {
    Result<std::unique_ptr<VideoDecoder>> begun = make_video_decoder({{.seconds = seconds}});
    if (!begun) return begun.error().message();
    const std::unique_ptr<VideoDecoder> decoder = std::move(*begun);
    const std::set<pid_t> before = children();
    Interrupted sink([&] {
      for (const pid_t child : before) kill(child, SIGSTOP);
    });
    const Result<void> result = decode(*decoder, sink);
    EXPECT_EQ(code(result), "HR0369");
    EXPECT_NE(result.error().message().find("time limit"), std::string::npos);
    for (const pid_t child : children()) kill(child, SIGCONT);
    expect_exact(*decoder_);
    Hashes again;
    const Result<void> good = decode(*decoder, again);
    if (!good) return good.error().message();
    return again.hashes == stream_.hashes ? "" : "other frames";
  }));
}

TEST_F(MediaProcessTest, IsNotStartedIfNothingIsRequested) {
  std::atomic<bool> stop = false;
  const auto decoder = made({{.stop = &stop}});
  const std::set<pid_t> all = children();
  Interrupted sink([&] {
    for (const pid_t child : all) kill(child, SIGSTOP);
    stop = true;
  });
  const Result<void> result = decode(*decoder, sink);
  EXPECT_EQ(code(result), "HR0369");
  EXPECT_EQ(result.error().message().find("time limit"), std::string::npos);
  for (const pid_t child : children()) kill(child, SIGCONT);
}

TEST_F(MediaProcessTest, IgnoresCtrlC) {
  for (const pid_t child : children()) {
    kill(child, SIGINT);
    kill(child, SIGTERM);
    kill(child, SIGTSTP);
  }
  expect_exact(*decoder_);
}

TEST_F(MediaProcessTest, LeaksNoDescriptorsMemoryOrProcesses) {
  decoder_.reset();
  EXPECT_TRUE(children().empty());
  const size_t descriptors = entries("/proc/self/fd"), shared = shared_memories();
  for (int i = 0; i < 30; ++i) {
    const auto decoder = made();
    if (i % 10 == 0) expect_exact(*decoder);
    EXPECT_EQ(children().size(), 1U);
  }
  EXPECT_EQ(entries("/proc/self/fd"), descriptors);
  EXPECT_EQ(shared_memories(), shared);
  EXPECT_TRUE(children().empty());
}

TEST_F(MediaProcessTest, DoesNotGrowOverAThousandStreams) {
  const Stream other = read_stream("vp9");
  const pid_t child = *children().begin();
  const size_t descriptors = entries("/proc/self/fd");
  int64_t settled = 0;
  for (int i = 0; i < 500; ++i) {
    Hashes sink;
    ASSERT_TRUE(decoder_->decode(other.track, other.file, video_test::alone(other.track, 0), sink));
    ASSERT_TRUE(
        decoder_->decode(stream_.track, stream_.file, video_test::alone(stream_.track, 0), sink));
    if (i == 100) settled = std::stoll(status_line(child, "VmData"));
  }
  EXPECT_EQ(*children().begin(), child);
  if (!kSanitized) {
    EXPECT_LE(std::stoll(status_line(child, "VmData")), settled + 1024);  // kB
  }
  EXPECT_EQ(entries("/proc/self/fd"), descriptors);
}

TEST_F(MediaProcessTest, FreesTheMemoryOfALargePacket) {
  const auto shared = [] { return std::stoll(status_line(getpid(), "RssShmem")); };  // kB
  expect_exact(*decoder_);
  const int64_t settled = shared();
  VideoTrack track = stream_.track;
  MediaPacket& packet = track.packets[0];
  const std::span<const uint8_t> bytes = std::span<const uint8_t>(stream_.file);
  const auto first = bytes.subspan(size_t(packet.offset), packet.size);
  std::vector<uint8_t> large(first.begin(), first.end());
  constexpr uint32_t kFiller = 40 << 20;  // H.264, 7.3.2.7
  large.insert(large.end(), {kFiller >> 24, kFiller >> 16 & 0xFF, 0, 0, 12});
  large.resize(large.size() + kFiller - 1, 0xFF);
  packet = {.offset = 0, .size = static_cast<uint32_t>(large.size()), .key = true};
  Hashes sink;
  ASSERT_TRUE(decoder_->decode(track, large, video_test::alone(track, 0), sink));
  EXPECT_EQ(sink.hashes[0], stream_.hashes[0]);
  expect_exact(*decoder_);
  EXPECT_LE(shared(), settled + 4096);
}

TEST_F(MediaProcessTest, IsConfined) {
  const pid_t child = *children().begin();
  EXPECT_EQ(status_line(child, "Seccomp"), "2");
  EXPECT_EQ(status_line(child, "NoNewPrivs"), "1");
  decoder_.reset();
  const auto trusting = made({{.isolate = false}});
  EXPECT_EQ(status_line(*children().begin(), "Seccomp"), "0");
  expect_exact(*trusting);
}

TEST_F(MediaProcessTest, HasOnlyItsOwnDescriptors) {
  const int left_open = open("/dev/null", O_RDONLY);  // left open by other code, across exec
  const auto decoder = made();
  for (const pid_t child : children()) {
    const std::string folder = "/proc/" + std::to_string(child) + "/fd";
    EXPECT_EQ(entries(folder.c_str()), 6U);
  }
  close(left_open);
}

TEST_F(MediaProcessTest, OutlivesTheThreadThatStartedIt) {
  std::unique_ptr<VideoDecoder> decoder;
  std::thread([&] { decoder = made(); }).join();
  const std::set<pid_t> before = children();
  expect_exact(*decoder);
  EXPECT_EQ(children(), before);
}

TEST_F(MediaProcessTest, IsNotSharedWithAForkedProcess) {
  if (kThreadSanitizer) GTEST_SKIP();
  expect_exact(*decoder_);
  const size_t descriptors = entries("/proc/self/fd");
  const pid_t child = fork();
  if (child == 0) {
    // Its descriptors are closed; decoders made before and after the fork use processes of their
    // own.
    bool good = entries("/proc/self/fd") + 4 == descriptors;
    Hashes sink, other;
    good = good && decode(*decoder_, sink) && sink.hashes == stream_.hashes;
    good = good && children().size() == 1;
    good = good && decode(*made(), other) && other.hashes == stream_.hashes;
    decoder_.reset();
    good = good && children().empty();
    _exit(good ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  expect_exact(*decoder_);
}

TEST_F(MediaProcessTest, EndsWithTheProcessThatStartedIt) {
  if (kThreadSanitizer) GTEST_SKIP();
  int numbers[2];
  ASSERT_EQ(pipe(numbers), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto decoder = made();
    const pid_t started = *children().begin();
    kill(started, SIGSTOP);  // it does not notice that the socket is closed
    (void)!write(numbers[1], &started, sizeof started);
    kill(getpid(), SIGKILL);
  }
  pid_t started = 0;
  ASSERT_EQ(read(numbers[0], &started, sizeof started), ssize_t{sizeof started});
  waitpid(child, nullptr, 0);
  for (int i = 0; i < 30'000 && !status_line(started, "State").empty() &&
                  status_line(started, "State")[0] != 'Z';
       ++i) {
    usleep(10000);
  }
  const std::string state = status_line(started, "State");
  EXPECT_TRUE(state.empty() || state[0] == 'Z') << state;
  close(numbers[0]);
  close(numbers[1]);
}

TEST_F(MediaProcessTest, SinkThatFailsEndsTheCallAlone) {
  class Failing final : public FrameSink {
   public:
    Result<void> frame(size_t number, const YuvFrame&) override {
      if (number == 3) return media_error();
      return {};
    }
    static Error media_error() {
      static const ErrorCode kCode{"HR0000", ErrorKind::kData, "test", "test"};
      return {.code = &kCode};
    }
  } sink;
  const std::set<pid_t> before = children();
  EXPECT_EQ(code(decode(*decoder_, sink)), "HR0000");
  expect_exact(*decoder_);
  EXPECT_EQ(children(), before);
}

TEST_F(MediaProcessTest, SinkThatThrowsAffectsNoOtherCall) {
  Interrupted sink([] { throw std::bad_alloc(); });
  EXPECT_THROW((void)decode(*decoder_, sink), std::bad_alloc);
  expect_exact(*decoder_);
}

TEST_F(MediaProcessTest, GetsItsPacketsOrAnError) {
  Stream stream = read_stream("mjpeg");
  stream.file.resize(size_t{32} << 20);
  stream.track.packets[0].size = static_cast<uint32_t>(stream.file.size());
  signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{size_t{16} << 20, before.rlim_max};  // smaller than its frames' memory
  setrlimit(RLIMIT_FSIZE, &small);
  Hashes sink;
  const Result<void> result =
      decoder_->decode(stream.track, stream.file, video_test::alone(stream.track, 0), sink);
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(code(result), "HR0371") << result.error().message();
  expect_exact(*decoder_);
}

TEST_F(MediaProcessTest, DamageIsAnErrorOrGivesFfmpegsFrames) {
  std::mt19937 random(7);
  const double begin = now();
  int decoded = 0, refused = 0;
  for (const char* const name :
       {"h264", "h264_open", "hevc", "vp8", "vp9", "av1", "mpeg4", "mjpeg"}) {
    const Stream stream = read_stream(name);
    for (int i = 0; i < 1250 && now() - begin < 20; ++i) {
      Stream damaged = stream;
      for (unsigned k = 0; k <= random() % 4; ++k) {
        if (random() % 4) {
          damaged.file[random() % damaged.file.size()] = static_cast<uint8_t>(random());
        } else {
          uint32_t& size = damaged.track.packets[random() % damaged.track.packets.size()].size;
          size = random() % (size + 1);
        }
      }
      Hashes sink;
      const Result<void> result =
          decoder_->decode(damaged.track, damaged.file, whole(damaged.track), sink);
      ++(result ? decoded : refused);
      if (result) {
        EXPECT_EQ(sink.hashes.size(), stream.hashes.size());
      } else {
        // Never an error that means it crashed, hung, or sent an invalid reply.
        const std::string found = code(result);
        EXPECT_TRUE(found == "HR0367" || found == "HR0368" || found == "HR0371")
            << name << ", " << i << ": " << result.error().message();
      }
    }
    Hashes sink;
    ASSERT_TRUE(decoder_->decode(stream.track, stream.file, whole(stream.track), sink)) << name;
    EXPECT_EQ(sink.hashes, stream.hashes) << name;
  }
  EXPECT_GT(decoded, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace headrace
