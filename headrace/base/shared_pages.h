// SPDX-License-Identifier: Apache-2.0
// Memory that processes of one user share by name: a memfd, which is not in any file system, so
// nothing remains when the last process that uses it ends, even if that process is killed.
//
// Note [How processes find shared pages]: a memfd has no path, but /proc/PID/fd shows its name to
// processes of the same user, which may open it there. While a process looks for the pages, and
// creates missing ones, it holds a lock (flock) on /proc itself, so that two processes do not both
// create them. The lock ends with its process. After ten seconds a process stops waiting for the
// lock: at worst there are two sets of pages. Only files of this user are accepted, with the
// permissions, the size and the seals that this code sets. The seals fix the size, so no process
// can kill another by truncating the pages (SIGBUS).
//
// Bytes are written by write(), which returns false when the system is out of memory, and read
// through a mapping that is read-only except at its beginning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace headrace {

// Any thread may call the members; concurrent writes must not overlap.
class SharedPages {
 public:
  // Opens the pages with this name that a process of this user has created, or creates them, all
  // zeros. The first `writable` bytes, rounded up to whole pages, are allocated immediately. `name`
  // must encode everything that has to match: both sizes and the layout of the content. Null, with
  // the reason in `why`, if processes cannot share memory.
  static std::unique_ptr<SharedPages> shared(const std::string& name, size_t bytes, size_t writable,
                                             std::string& why);
  // Creates pages for this process alone.
  static std::unique_ptr<SharedPages> alone(size_t bytes, size_t writable, std::string& why);
  ~SharedPages();
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;

  size_t size() const { return bytes_; }
  const uint8_t* memory() const { return memory_; }
  uint8_t* writable() const { return memory_; }  // its first bytes
  // False if the system is out of memory. REQUIRES: the range is within size().
  bool write(size_t offset, std::span<const uint8_t> bytes) const;

 private:
  SharedPages(int file, size_t bytes) : file_(file), bytes_(bytes) {}
  // Null, with the reason in `why`, if a system call fails. Takes ownership of `file` in any case.
  static std::unique_ptr<SharedPages> mapped(int file, size_t bytes, size_t writable,
                                             std::string& why);

  const int file_;  // open as long as other processes may look it up
  const size_t bytes_;
  uint8_t* memory_ = nullptr;
};

}  // namespace headrace
