// SPDX-License-Identifier: Apache-2.0
// A file that several threads and processes append to while others read it. Each append is written
// in one piece. Nothing is said about the order in which changes at given places become visible, so
// what is read must prove itself (by a checksum).
//
// Nothing here is an error worth words: a file that cannot be had, read or written is answered with
// null or false, and errno. All members may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "headrace/base/mutex.h"

namespace headrace {

class GrowingFile {
 public:
  // An existing regular file; null if it cannot be opened.
  static std::unique_ptr<GrowingFile> open(const std::string& path, bool writable);
  // A new file next to `path`, which gets that name only by publish(). If the file system allows
  // it, it has no name until then, so that a killed process leaves nothing behind.
  static std::unique_ptr<GrowingFile> create(const std::string& path);
  ~GrowingFile();
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;

  // Gives a created file its name. With `replace` it replaces an existing file; without, false
  // (EEXIST) if there is one. Readers of the replaced file keep it.
  bool publish(bool replace);

  uint64_t size() const;                                     // now; 0 if unknown
  bool read(uint64_t offset, std::span<uint8_t> out) const;  // all of `out`
  bool write(uint64_t offset, std::span<const uint8_t> bytes);
  bool grow_to(uint64_t bytes);  // with zeros
  // Where the bytes begin.
  std::optional<uint64_t> append(std::span<const uint8_t> bytes) EXCLUDES_LOCK(mutex_);

 private:
  GrowingFile(int descriptor, std::string path, std::string temporary)
      : descriptor_(descriptor), path_(std::move(path)), temporary_(std::move(temporary)) {}

  const int descriptor_;
  const std::string path_;
  std::string temporary_;  // its temporary name, if it has one
  Mutex mutex_;            // the descriptor's own position, which tells where an append was written
};

}  // namespace headrace
