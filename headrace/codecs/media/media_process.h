// SPDX-License-Identifier: Apache-2.0
// The engine's handle of headrace-av: starts it, sends requests, waits, and ends it when it does
// not answer. One thread at a time uses a process; any thread may start or end one.
//
// It ends with this object, and with this process whatever happens to it. In a process that is
// forked from this one (a DataLoader's worker) the object is one that is_running() no more, and
// nothing of the program is shared.
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

// How long its answers may take together, the engine's own work in between not counted; and
// whether somebody wants no answer any more.
struct Patience {
  double seconds = 60;
  const std::atomic<bool>* stop = nullptr;
};

class MediaProcess {
 public:
  // HR0370 where it cannot be started. `program`: the path of headrace-av.
  static Result<std::unique_ptr<MediaProcess>> start(const std::string& program, bool confined,
                                                     Patience& patience);
  ~MediaProcess();
  MediaProcess(const MediaProcess&) = delete;
  MediaProcess& operator=(const MediaProcess&) = delete;

  // Between two videos: also false, and then it is ended, where it has ended by itself or said what
  // nobody asked for. The next video is not to pay for it.
  bool is_running();
  void end();

  // Both memories grow to this at least, which takes none until they are written to. What it may
  // have beside them: `working_bytes`.
  Result<void> reserve(size_t packet_bytes, size_t frame_bytes, size_t working_bytes);
  // Gives the frames' memory back to the system. REQUIRES: no frame is in use.
  void drop_frames();
  // The same of the packets' memory behind its first MiB, which one packet may have made large.
  // REQUIRES: no packet is in use.
  void drop_large_packets();
  std::span<uint8_t> packets() const { return packets_.bytes; }
  std::span<const uint8_t> frames() const { return frames_.bytes; }

  // Its answer to a request, or HR0369, and then it has ended.
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
  Error ended();  // reaped: why it has
  void forget();  // in a forked process

  int socket_ = -1;
  int handle_ = -1;  // of the process: its number may be given to another
  pid_t id_ = -1;
  Memory packets_, frames_;
  uint64_t address_space_ = 0;
  bool confined_ = true;
};

}  // namespace headrace
