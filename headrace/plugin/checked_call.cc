// SPDX-License-Identifier: Apache-2.0
#include "headrace/plugin/checked_call.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

namespace headrace {
namespace {

constexpr size_t kGuard = size_t{64} << 10;  // guard bytes before and after an output
constexpr uint8_t kPattern = 0xA7;

constexpr std::array<int, 5> kSignals = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
struct sigaction before[kSignals.size()];    // written once, before the handler can run
thread_local const char* running = nullptr;  // describes this thread's checked call

const char* short_name(int signal) {
  switch (signal) {
    case SIGSEGV:
      return "SIGSEGV";
    case SIGBUS:
      return "SIGBUS";
    case SIGFPE:
      return "SIGFPE";
    case SIGILL:
      return "SIGILL";
    default:
      return "SIGABRT";
  }
}

void say(const char* text) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, strlen(text));
}

// Async-signal-safe. When this returns, the signal is raised again, for the previous handler.
void on_crash(int signal, siginfo_t*, void*) {
  if (const char* const what = running) {
    say("Headrace: ");
    say(short_name(signal));
    say(" in ");
    say(what);
    say("\n");
  }
  const auto at = size_t(std::ranges::find(kSignals, signal) - kSignals.begin());
  sigaction(signal, &before[at], nullptr);
  raise(signal);
}

// Bytes that end at an inaccessible page, as far as `align` allows.
class EndOfPage {
 public:
  EndOfPage(std::span<const uint8_t> bytes, size_t align) {
    const size_t page = size_t(sysconf(_SC_PAGESIZE));
    const size_t room = (bytes.size() + page - 1) / page * page;
    mapped_ = room + page;
    void* const memory =
        mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    memory_ = static_cast<uint8_t*>(memory);
    mprotect(memory_ + room, page, PROT_NONE);
    at_ = memory_ + (room - bytes.size()) / align * align;
    if (!bytes.empty()) std::memcpy(at_, bytes.data(), bytes.size());
  }
  ~EndOfPage() { munmap(memory_, mapped_); }
  EndOfPage(const EndOfPage&) = delete;
  EndOfPage& operator=(const EndOfPage&) = delete;
  const uint8_t* data() const { return at_; }

 private:
  uint8_t *memory_ = nullptr, *at_ = nullptr;
  size_t mapped_ = 0;
};

// An output between two guards.
class Guarded {
 public:
  Guarded(size_t bytes, uint8_t fill) {
    memory_.reserve(bytes + 2 * kGuard);
    memory_.resize(kGuard, kPattern);
    memory_.resize(kGuard + bytes, fill);
    memory_.resize(kGuard + bytes + kGuard, kPattern);
  }
  uint8_t* data() { return memory_.data() + kGuard; }
  // How far before and after the output bytes were written.
  std::string written_outside() const {
    const auto other = [](uint8_t byte) { return byte != kPattern; };
    const auto low = std::find_if(memory_.begin(), memory_.begin() + kGuard, other);
    const size_t below = size_t(memory_.begin() + kGuard - low);
    const auto last = std::find_if(memory_.rbegin(), memory_.rbegin() + kGuard, other);
    const size_t above = size_t(memory_.rbegin() + kGuard - last);
    if (below > 0) return "wrote up to " + std::to_string(below) + " bytes before its output";
    if (above > 0) return "wrote up to " + std::to_string(above) + " bytes past its output";
    return {};
  }

 private:
  std::vector<uint8_t> memory_;
};

std::string difference(const uint8_t* ones, const uint8_t* zeros, size_t bytes) {
  const auto at = size_t(std::mismatch(ones, ones + bytes, zeros).first - ones);
  if (at == bytes) return {};
  size_t left = 0;
  for (size_t i = 0; i < bytes; ++i) left += ones[i] == 0xFF && zeros[i] == 0;
  if (left > 0 && ones[at] == 0xFF && zeros[at] == 0)
    return "left " + std::to_string(left) + " of " + std::to_string(bytes) +
           " bytes of its output unwritten, the first at byte " + std::to_string(at);
  return "gave two results for the same input and draws, which differ from byte " +
         std::to_string(at) + " on";
}

}  // namespace

RunningCall::RunningCall(const std::string& name) : before_(running) { running = name.c_str(); }
RunningCall::~RunningCall() { running = before_; }

int32_t checked_call(std::span<const uint8_t> input, std::span<uint8_t> output, size_t item_bytes,
                     const std::string& name,
                     const std::function<int32_t(const void* input, void* output)>& call,
                     std::string& broken, const uint64_t* written) {
  const EndOfPage copy(input, item_bytes);
  Guarded ones(output.size(), 0xFF), zeros(output.size(), 0);
  size_t bytes = output.size();
  broken.clear();
  for (Guarded* out : {&ones, &zeros}) {
    int32_t status;
    {
      const RunningCall running(name);
      status = call(copy.data(), out->data());
    }
    if (broken = out->written_outside(); !broken.empty()) return status;
    if (!input.empty() && std::memcmp(copy.data(), input.data(), input.size()) != 0) {
      broken = "changed its input";
      return status;
    }
    if (status != 0) return status;
    if (written) bytes = std::min<uint64_t>(bytes, *written);
  }
  broken = difference(ones.data(), zeros.data(), bytes);
  if (bytes > 0) std::memcpy(output.data(), ones.data(), bytes);
  return 0;
}

void name_crashes() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], nullptr, &before[i]);
    struct sigaction action{};
    action.sa_sigaction = on_crash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (const int signal : kSignals) sigaction(signal, &action, nullptr);
  });
}

}  // namespace headrace
