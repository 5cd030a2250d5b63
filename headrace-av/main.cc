// SPDX-License-Identifier: Apache-2.0
// headrace-av PROCESS confined|trusted: decodes videos for the engine that has started it, and ends
// with it. It opens no file: it sees only three descriptors (media_protocol.h).
//
// Only this program is linked with libavcodec, whose Debian build is licensed under the GPL, and
// only this program parses video data with it. Hostile data that takes it over controls a process
// that can compute, and nothing else (sandbox.h).
#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "frame_memory.h"
#include "headrace/codecs/media/media_protocol.h"
#include "library.h"
#include "sandbox.h"
#include "stream_decoder.h"

namespace headrace::media {
namespace {

// The engine is gone, or no longer needs this process: nothing to clean up.
[[noreturn]] void end() { _exit(0); }

void send(const Reply& reply) {
  if (write(kSocket, &reply, sizeof reply) != sizeof reply) end();
}

Request next_request() {
  Request request;
  if (read(kSocket, &request, sizeof request) != sizeof request) end();
  return request;
}

void send_failure(const FailureReport& report) {
  Reply reply;
  reply.kind = ReplyKind::kFailed;
  reply.failure = report.failure;
  reply.number = report.number;
  std::strncpy(reply.name.data(), report.name, reply.name.size() - 1);
  send(reply);
}

// The packets that the engine has written.
class PacketMemory {
 public:
  std::span<const uint8_t> bytes(size_t size) {
    if (size != bytes_) {
      if (data_) munmap(const_cast<uint8_t*>(data_), bytes_);
      void* const data = mmap(nullptr, size, PROT_READ, MAP_SHARED, kPacketMemory, 0);
      data_ = data == MAP_FAILED ? nullptr : static_cast<const uint8_t*>(data);
      bytes_ = data_ ? size : 0;
    }
    return {data_, bytes_};
  }

 private:
  const uint8_t* data_ = nullptr;
  size_t bytes_ = 0;
};

class Sender final : public FrameTaker {
 public:
  bool take(const Frame& frame) override {
    send(Reply{.kind = ReplyKind::kFrame, .frame = frame});
    return next_request().kind == RequestKind::kContinue;
  }
};

// Fills in the last message of the answer.
FailureReport answer(const Request& request, std::span<const uint8_t> bytes, StreamDecoder& decoder,
                     AudioStreamDecoder& audio_decoder, Reply& reply) {
  if (request.parameter_bytes > bytes.size() || request.packets > bytes.size() / sizeof(Packet)) {
    return {Failure::kRequest};
  }
  const std::span packets(reinterpret_cast<const Packet*>(bytes.data()), request.packets);
  Sender sender;
  switch (request.kind) {
    case RequestKind::kOpen:
      reply.kind = ReplyKind::kOpened;
      return decoder.open(request, bytes.first(request.parameter_bytes));
    case RequestKind::kDecode:
      reply.kind = ReplyKind::kDecoded;
      return decoder.decode(request, packets, bytes, sender, reply.number);
    case RequestKind::kOpenAudio:
      reply.kind = ReplyKind::kOpened;
      decoder.close();  // frames are written where samples will go
      return audio_decoder.open(request, bytes.first(request.parameter_bytes));
    case RequestKind::kDecodeAudio:
      reply.kind = ReplyKind::kSamples;
      return audio_decoder.decode(packets, bytes, reply.samples);
    default:
      return {Failure::kRequest};
  }
}

[[noreturn]] void serve() {
  FrameMemory frames(kFrameMemory);
  PacketMemory packets;
  StreamDecoder decoder(frames);
  AudioStreamDecoder audio_decoder(frames);
  for (;;) {
    const Request request = next_request();
    Reply reply;
    const FailureReport report =
        answer(request, packets.bytes(request.packet_bytes), decoder, audio_decoder, reply);
    if (report) {
      send_failure(report);
    } else {
      send(reply);
    }
  }
}

// Keeps freed memory, so that the next decoder reuses it: fresh pages would cost more than decoding
// many frames. For unusually large videos the memory is released.
void keep_memory() {
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
  mallopt(M_TRIM_THRESHOLD, 16 << 20);
}

uint64_t address_space() {
  unsigned long pages = 0;
  FILE* const file = std::fopen("/proc/self/statm", "r");
  if (!file) return 0;
  if (std::fscanf(file, "%lu", &pages) != 1) pages = 0;
  std::fclose(file);
  return uint64_t{pages} * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

int run(int count, char** arguments) {
  if (count != 3) {
    std::fputs("headrace-av is started by Headrace, which decodes videos with it.\n", stderr);
    return 2;
  }
  // The second check: the engine may have exited before prctl().
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != std::atoi(arguments[1])) return 3;
#ifdef SYS_close_range
  syscall(SYS_close_range, kFrameMemory + 1, ~0U, 0);  // descriptors that other code left open
                                                       // across exec
#endif
  std::set_new_handler([] { _exit(4); });
  record_library_errors();
  keep_memory();
  const Reply ready{
      .kind = ReplyKind::kReady, .version = kVersion, .address_space = address_space()};
  if (std::strcmp(arguments[2], kUnsandboxed) != 0 && !enter_sandbox()) {
    send_failure({Failure::kNoSandbox});
    return 5;
  }
  send(ready);
  serve();
}

}  // namespace headrace::media

int main(int count, char** arguments) { return headrace::media::run(count, arguments); }
