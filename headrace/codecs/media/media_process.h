// SPDX-License-Identifier: Apache-2.0
// The engine's handle for headrace-av: starts it, sends requests, waits, and kills it if it does
// not answer. One thread at a time uses a process; any thread may start or end a process.
//
// headrace-av ends with this object, and whenever this process ends. In a process that was forked
// from this one (a DataLoader worker), is_running() is false, and headrace-av is not shared.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "headrace/base/error.h"
#include "headrace/codecs/media/media_protocol.h"

namespace headrace {

// Time limit for all answers of the process together, excluding the engine's own work in between;
// and a flag to cancel waiting.
struct Patience {
  double seconds = 60;
  const std::atomic<bool>* stop = nullptr;
};

class MediaProcess {
 public:
  // HR0370 if it cannot be started. `program`: the path of headrace-av.
  static Result<std::unique_ptr<MediaProcess>> start(const std::string& program, bool confined,
                                                     Patience& patience);
  ~MediaProcess();
  MediaProcess(const MediaProcess&) = delete;
  MediaProcess& operator=(const MediaProcess&) = delete;

  // Must be called between two videos. If the process has exited or sent an unexpected message,
  // ends it and returns false, so that the next video is not affected.
  bool is_running();
  void end();

  // Grows both memories to at least this size, without using memory until they are written to.
  // `working_bytes`: what the program may use in addition.
  Result<void> reserve(size_t packet_bytes, size_t frame_bytes, size_t working_bytes);
  // Returns the frames' memory to the system. REQUIRES: no frame is in use.
  void drop_frames();
  // The same for the packets' memory past its first MiB, which only an unusually large packet
  // needs. REQUIRES: no packet is in use.
  void drop_large_packets();
  std::span<uint8_t> packets() const { return packets_.bytes; }
  std::span<const uint8_t> frames() const { return frames_.bytes; }

  // Sends a request and returns the answer, or HR0369, after which the process has ended.
  Result<media::Reply> ask(media::Request request, Patience& patience);

  pid_t id() const { return id_; }

 private:
  struct Memory {
    int file = -1;
    std::span<uint8_t> bytes;
    bool grow(size_t to, int protection);
    void drop(size_t from) const;
    void close();
  };

  friend struct MediaProcesses;
  MediaProcess() = default;
  int launch(const std::string& program, bool confined);  // 0 or an errno
  Result<media::Reply> receive(Patience& patience);
  Error ended();  // reaps it; returns why it ended
  void forget();  // in a forked process

  int socket_ = -1;
  int handle_ = -1;  // a handle of the process, because its id may be reused
  pid_t id_ = -1;
  Memory packets_, frames_;
  uint64_t address_space_ = 0;
  bool confined_ = true;
};

// Finds headrace-av and its requirements. Any thread may call.

// Path of headrace-av: next to the library that this code is part of; for wheels, in the package
// headrace_media, installed next to the package headrace. If it is in neither, the path where it
// belongs.
std::string media_program();
// The package that contains the program, or the library that it was linked with: "libavcodec59".
std::string media_package();
// Hint for errors: how to install that package.
std::string media_install();
// Why media_program() is missing, and what to do about it.
std::string media_absence();
std::string media_absence_hint();

}  // namespace headrace
