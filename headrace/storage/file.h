// SPDX-License-Identifier: Apache-2.0
// Local files, read by position.
//
// Interrupted and short reads never show. Errors that may pass (EIO, ESTALE, a network that is
// away) are tried again after a pause, kRetries times, then become a storage error that names file
// and offset. Anything but a regular file is refused, and opening one cannot hang.
// All const members may be called from any thread.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"

namespace headrace {

// The system calls that reading makes, so that tests can make them fail. Each returns what the call
// returns and sets errno. Implementations are called from any thread.
class FileCalls {
 public:
  virtual ~FileCalls() = default;
  virtual int open(const char* path, int flags) const;
  virtual int stat(int descriptor, struct stat* out) const;
  virtual ssize_t read(int descriptor, void* out, size_t count, int64_t offset) const;
  virtual ssize_t read(int descriptor, std::span<const iovec> parts, int64_t offset) const;
  virtual void close(int descriptor) const;
  virtual void pause(int milliseconds) const;
  static const FileCalls& system();
};

struct FileIdentity {
  uint64_t device = 0, inode = 0, size = 0;
  int64_t modified_ns = 0;
  bool operator==(const FileIdentity&) const = default;
};
Result<FileIdentity> identity_of(const std::string& path);

class File {
 public:
  static constexpr int kRetries = 3;
  static constexpr int kFirstPauseMs = 50;  // then four times as long each time

  static Result<File> open(const std::string& path, const FileCalls& calls = FileCalls::system());
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }  // when it was opened
  // Fills all of `out`. A file that ends before that is a data error.
  Result<void> read(uint64_t offset, std::span<uint8_t> out) const;
  // The same into several places, one behind the other in the file: with one call where possible.
  Result<void> read(uint64_t offset, std::span<const std::span<uint8_t>> parts) const;
  // Asks the system to have these bytes at hand soon; it may do nothing.
  void will_read(uint64_t offset, uint64_t bytes) const;
  // What tells this file from one that replaces or changes it.
  Result<FileIdentity> identity() const;

 private:
  File(std::string path, int descriptor, uint64_t size, const FileCalls& calls)
      : path_(std::move(path)), descriptor_(descriptor), size_(size), calls_(&calls) {}

  std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
  const FileCalls* calls_;
};

struct ReadLimits {
  uint64_t max_bytes = uint64_t{2} << 30;  // of one file
};

// The whole file. `out` keeps its memory where that suffices; its contents mean nothing on an
// error.
Result<void> read_file(const std::string& path, Buffer& out, const ReadLimits& limits = {},
                       const FileCalls& calls = FileCalls::system());

// The first bytes: as many as `out` takes or the file has. Returns how many.
Result<size_t> read_prefix(const std::string& path, std::span<uint8_t> out,
                           const FileCalls& calls = FileCalls::system());

// Whether it is a file that begins with these bytes, which are 16 at most.
bool file_begins_with(const std::string& path, std::string_view bytes);

// What a path leads to, links followed. False, too, where it cannot be looked at.
bool is_folder(const std::string& path);
bool is_file(const std::string& path);  // a regular one

// The storage error of a failed call on a path: HR0201 nothing there, HR0202 not allowed, ...
// `doing` is a verb: "open", "list".
Error storage_error(int error_number, std::string_view doing, const std::string& path,
                    int64_t offset = -1);

}  // namespace headrace
