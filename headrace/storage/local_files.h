// SPDX-License-Identifier: Apache-2.0
// Files of the local file system: the storage of paths without a scheme.
//
// Interrupted and short reads are handled here. Errors that may be temporary are retried after a
// pause, then become a storage error that names file and offset. Anything but a regular file is
// rejected, and opening one cannot hang. All const members may be called from any thread.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "headrace/storage/storage.h"

namespace headrace {

// The system calls used for reading, so that tests can make them fail. Each returns what the call
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

class LocalFiles final : public Storage {
 public:
  // `calls` must outlive it and the files it opens.
  explicit LocalFiles(const FileCalls& calls = FileCalls::system()) : calls_(calls) {}
  static const LocalFiles& instance();

  Result<PathStatus> look_at(const std::string& path) const override;
  Result<PathStatus> list(const std::string& path, const EachEntry& each) const override;
  Result<std::unique_ptr<OpenFile>> open(const std::string& path,
                                         const FileIdentity* known = nullptr) const override;
  Result<void> read_file(const std::string& path, Buffer& out,
                         const ReadLimits& limits = {}) const override;
  Result<size_t> read_prefix(const std::string& path, std::span<uint8_t> out) const override;

 private:
  const FileCalls& calls_;
};

// A name for a file that is not complete yet. Thread-safe.
// 16 hexadecimal digits that no other call, process or machine produces. Callers still create files
// with O_EXCL: an existing file with that name belongs to another user.
std::string random_name();

}  // namespace headrace
