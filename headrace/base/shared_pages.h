// SPDX-License-Identifier: Apache-2.0
// Memory that processes of one user share by name: a memfd, which is in no file system, so nothing
// remains of it when the last process that has it ends, however it ends.
//
// Note [How processes find shared pages]: a memfd has no path, but /proc/PID/fd shows its name to
// processes of the same user, which may open it there. While a process looks, and creates the pages
// if there are none, it holds a lock (flock) on /proc itself, so that two do not both create them.
// The lock ends with its process; one that is held for longer than ten seconds is not waited for:
// at worst there are two sets of pages. Only files of this user are taken, with the permissions,
// the size and the seals that they get here. These seals fix the size, so no process can end
// another by truncating the pages (SIGBUS).
//
// Bytes are written by write(), which says when the system has no memory left, and read through a
// mapping that is read-only except at its beginning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace headrace {

// Any thread may call the members; what is written at the same time must not overlap.
class SharedPages {
 public:
  // The pages of this name that a process of this user has; new ones, all zeros, if there are none.
  // The first `writable` bytes, rounded up to whole pages, have memory from the start. `name` tells
  // all that must be equal: both sizes, and the form of the content. Null, with `why`, where
  // processes cannot share memory.
  static std::unique_ptr<SharedPages> shared(const std::string& name, size_t bytes, size_t writable,
                                             std::string& why);
  // New pages of this process alone.
  static std::unique_ptr<SharedPages> alone(size_t bytes, size_t writable, std::string& why);
  ~SharedPages();
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;

  size_t size() const { return bytes_; }
  const uint8_t* memory() const { return memory_; }
  uint8_t* writable() const { return memory_; }  // its first bytes
  // False where the system has no memory for them. REQUIRES: inside of size().
  bool write(size_t offset, std::span<const uint8_t> bytes) const;

 private:
  SharedPages(int file, size_t bytes) : file_(file), bytes_(bytes) {}
  // Null, with `why`, where the system refuses it. It owns `file` in any case.
  static std::unique_ptr<SharedPages> mapped(int file, size_t bytes, size_t writable,
                                             std::string& why);

  const int file_;  // open as long as others may look for it
  const size_t bytes_;
  uint8_t* memory_ = nullptr;
};

}  // namespace headrace
