// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/quarantine_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "headrace/base/error.h"

namespace headrace {
namespace {

const ErrorCode kNoQuarantineFile{
    "HR0730", ErrorKind::kConfig, "quarantine file cannot be written",
    "quarantine= names a file to which each bad record is appended as a line of JSON. Its folder "
    "must exist and be writable."};

int opened(const std::string& path) {
  return ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
}

// Returns 0 or an errno; `written`: bytes of it that are in the file.
int write_all(int file, std::string_view text, size_t& written) noexcept {
  while (written < text.size()) {
    const ssize_t wrote = ::write(file, text.data() + written, text.size() - written);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return wrote < 0 ? errno : ENOSPC;
    written += static_cast<size_t>(wrote);
  }
  return 0;
}

}  // namespace

QuarantineFile::QuarantineFile(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  const int file = opened(path_);
  if (file < 0) raise(kNoQuarantineFile, path_ + ": " + std::strerror(errno));
  ::close(file);
}

int QuarantineFile::append(std::string_view line) const noexcept {
  const int file = opened(path_);
  if (file < 0) return errno;
  ::flock(file, LOCK_EX);  // held until close; without locks, only one process may write
  struct stat before{};
  const bool is_file = ::fstat(file, &before) == 0 && S_ISREG(before.st_mode);
  size_t written = 0;
  int error = write_all(file, line, written);
  if (error != 0 && written > 0 && is_file && ::ftruncate(file, before.st_size) != 0) {
    error = errno;
  }
  if (::close(file) != 0 && error == 0) error = errno;  // storage that reports errors late
  return error;
}

}  // namespace headrace
