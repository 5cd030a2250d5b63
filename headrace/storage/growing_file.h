// SPDX-License-Identifier: Apache-2.0
// A file that several threads and processes append to while others read it. Each append is
// contiguous in the file. Writes at given offsets may become visible in any order, so readers must
// verify what they read (by a checksum).
//
// Functions report failure by returning null or false and setting errno, without an Error. All
// members may be called from any thread.
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
  // Opens an existing regular file; null if it cannot be opened.
  static std::unique_ptr<GrowingFile> open(const std::string& path, bool writable);
  // Creates a file in the folder of `path`, which gets that name only by publish(). If the file
  // system allows it, it has no name until then, so that a killed process leaves nothing behind.
  static std::unique_ptr<GrowingFile> create(const std::string& path);
  ~GrowingFile();
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;

  // Gives a created file its name. With `replace` it replaces an existing file; without, false
  // (EEXIST) if there is one. A replaced file stays valid for processes that have it open.
  bool publish(bool replace);

  uint64_t size() const;                                     // now; 0 if unknown
  bool read(uint64_t offset, std::span<uint8_t> out) const;  // all of `out`
  bool write(uint64_t offset, std::span<const uint8_t> bytes);
  bool grow_to(uint64_t bytes);  // with zeros
  // Returns the offset of the appended bytes.
  std::optional<uint64_t> append(std::span<const uint8_t> bytes) EXCLUDES_LOCK(mutex_);

 private:
  GrowingFile(int descriptor, std::string path, std::string temporary)
      : descriptor_(descriptor), path_(std::move(path)), temporary_(std::move(temporary)) {}

  const int descriptor_;
  const std::string path_;
  std::string temporary_;  // its temporary name, if it has one
  Mutex mutex_;            // guards the descriptor's file position, which append() uses
};

}  // namespace headrace
