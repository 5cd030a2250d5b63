// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/growing_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "headrace/storage/local_files.h"

namespace headrace {
namespace {

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string temporary_name(const std::string& path) { return path + "." + random_name() + ".tmp"; }

}  // namespace

std::unique_ptr<GrowingFile> GrowingFile::open(const std::string& path, bool writable) {
  // O_NONBLOCK: opening a named pipe without a writer would wait forever.
  const int flags = (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  const int descriptor = ::open(path.c_str(), flags);
  if (descriptor < 0) return nullptr;
  struct stat status{};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    errno = EINVAL;
    return nullptr;
  }
  return std::unique_ptr<GrowingFile>(new GrowingFile(descriptor, path, {}));
}

std::unique_ptr<GrowingFile> GrowingFile::create(const std::string& path) {
  std::string temporary;
  int descriptor = ::open(folder_of(path).c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    temporary = temporary_name(path);
    descriptor = ::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  }
  if (descriptor < 0) return nullptr;
  return std::unique_ptr<GrowingFile>(new GrowingFile(descriptor, path, std::move(temporary)));
}

GrowingFile::~GrowingFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  ::close(descriptor_);
}

bool GrowingFile::publish(bool replace) {
  if (temporary_.empty()) {
    const std::string self = "/proc/self/fd/" + std::to_string(descriptor_);
    const std::string name = replace ? temporary_name(path_) : path_;
    if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0) {
      return false;
    }
    if (!replace) return true;
    temporary_ = name;
  }
  if (!replace) {
    if (::link(temporary_.c_str(), path_.c_str()) != 0) return false;
    ::unlink(temporary_.c_str());
  } else if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return false;
  }
  temporary_.clear();
  return true;
}

uint64_t GrowingFile::size() const {
  struct stat status{};
  return ::fstat(descriptor_, &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
}

bool GrowingFile::read(uint64_t offset, std::span<uint8_t> out) const {
  while (!out.empty()) {
    const ssize_t got = ::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    out = out.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return true;
}

bool GrowingFile::write(uint64_t offset, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t put =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put == 0) errno = ENOSPC;  // the system gives no other reason
    if (put <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(put));
    offset += static_cast<uint64_t>(put);
  }
  return true;
}

bool GrowingFile::grow_to(uint64_t bytes) {
  return ::ftruncate(descriptor_, static_cast<off_t>(bytes)) == 0;
}

std::optional<uint64_t> GrowingFile::append(std::span<const uint8_t> bytes) {
  const iovec piece{const_cast<uint8_t*>(bytes.data()), bytes.size()};
  MutexLock lock(mutex_);
  ssize_t put;
  do {
    // Offset -1: the descriptor's position advances to the end of the written bytes, even if other
    // processes have extended the file.
    put = ::pwritev2(descriptor_, &piece, 1, -1, RWF_APPEND);
  } while (put < 0 && errno == EINTR);
  if (put >= 0 && put != static_cast<ssize_t>(bytes.size())) errno = ENOSPC;  // partly written
  if (put != static_cast<ssize_t>(bytes.size())) return std::nullopt;
  const off_t end = ::lseek(descriptor_, 0, SEEK_CUR);
  if (end < put) return std::nullopt;
  return static_cast<uint64_t>(end - put);
}

}  // namespace headrace
