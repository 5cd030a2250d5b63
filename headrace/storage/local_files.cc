// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/local_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <new>
#include <thread>
#include <utility>

#include "headrace/base/number_text.h"
#include "headrace/base/random.h"
#include "headrace/storage/file_times.h"
#include "headrace/storage/idle_files.h"
#include "headrace/storage/storage_errors.h"

namespace headrace {
namespace {

// After a failure: waits before the next attempt; false if there is none.
bool wait_for_next(RetryCount& tries, int error_number, const FileCalls& calls) {
  if (error_number == EINTR) return true;
  const int milliseconds = tries.pause_before_next(error_number);
  if (milliseconds < 0) return false;
  calls.pause(milliseconds);
  return true;
}

bool has_no_descriptor(int error_number) {
  return error_number == EMFILE || error_number == ENFILE;
}

// An open descriptor that closes itself.
class Descriptor {
 public:
  Descriptor(int number, const FileCalls& calls) : number_(number), calls_(calls) {}
  ~Descriptor() { reset(-1); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }
  int release() { return std::exchange(number_, -1); }
  void reset(int number) {
    if (number_ >= 0) calls_.close(number_);
    number_ = number;
  }

 private:
  int number_;
  const FileCalls& calls_;
};

std::string kind_of_file(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a named pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

struct Opened {
  int descriptor;
  uint64_t size;
};

Result<Opened> open_regular(const std::string& path, const FileCalls& calls) {
  // O_NONBLOCK: opening a named pipe without a writer would wait forever.
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  if (path.find('\0') != std::string::npos) return storage_error(ENOENT, "open", path);
  RetryCount tries;
  for (;;) {
    Descriptor file(calls.open(path.c_str(), kFlags), calls);
    struct stat status{};
    if (file.number() < 0 || calls.stat(file.number(), &status) != 0) {
      const int error_number = errno;
      if (has_no_descriptor(error_number) && IdleFiles::of_process().close_one()) continue;
      if (wait_for_next(tries, error_number, calls)) continue;
      return storage_error(error_number, "open", path);
    }
    if (!S_ISREG(status.st_mode)) {
      return not_regular_error(path, kind_of_file(status.st_mode));
    }
    return Opened{file.release(), static_cast<uint64_t>(status.st_size)};
  }
}

FileIdentity identity_from(const struct stat& status) {
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .size = static_cast<uint64_t>(status.st_size),
          .modified_ns = changed_ns(status)};
}

PathKind kind_from(mode_t mode) {
  if (S_ISREG(mode)) return PathKind::kFile;
  return S_ISDIR(mode) ? PathKind::kFolder : PathKind::kOther;
}

PathStatus status_from(const struct stat& status) {
  return {.kind = kind_from(status.st_mode),
          .identity = identity_from(status),
          .status_changed_ns = status_changed_ns(status)};
}

// Fills `out` from `offset`. ESTALE means that the file server no longer knows the descriptor: the
// next attempt opens the path again, for this call only.
Result<void> read_fully(const std::string& path, int descriptor, uint64_t offset,
                        std::span<uint8_t> out, const FileCalls& calls) {
  RetryCount tries;
  Descriptor reopened(-1, calls);
  size_t done = 0;
  while (done < out.size()) {
    const size_t count = std::min(out.size() - done, size_t{1} << 30);
    const int64_t at = static_cast<int64_t>(offset + done);
    const ssize_t got = calls.read(descriptor, out.data() + done, count, at);
    if (got > 0) {
      done += std::min(static_cast<size_t>(got), count);
      continue;
    }
    if (got == 0) return ended_early_error(path, offset + out.size(), offset + done);
    const int error_number = errno;
    if (!wait_for_next(tries, error_number, calls))
      return storage_error(error_number, "read", path, at);
    if (error_number == ESTALE) {
      Result<Opened> fresh = open_regular(path, calls);
      if (!fresh) return std::move(fresh.error());
      reopened.reset(fresh->descriptor);
      descriptor = fresh->descriptor;
    }
  }
  return {};
}

class LocalFile final : public OpenFile {
 public:
  LocalFile(std::string path, int descriptor, uint64_t size, const FileCalls& calls)
      : path_(std::move(path)), descriptor_(descriptor, calls), size_(size), calls_(calls) {}

  uint64_t size() const override { return size_; }
  Result<void> read(uint64_t offset, std::span<uint8_t> out) const override;
  Result<void> read(uint64_t offset, std::span<const std::span<uint8_t>> parts) const override;
  Result<FileIdentity> identity() const override {
    struct stat status{};
    if (calls_.stat(descriptor_.number(), &status) != 0) {
      return storage_error(errno, "look at", path_);
    }
    return identity_from(status);
  }
  void will_read(uint64_t offset, uint64_t bytes) const override {
    (void)::posix_fadvise(descriptor_.number(), static_cast<off_t>(offset),
                          static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
  }

 private:
  const std::string path_;
  const Descriptor descriptor_;
  const uint64_t size_;
  const FileCalls& calls_;
};

Result<void> LocalFile::read(uint64_t offset, std::span<uint8_t> out) const {
  if (offset > size_ || out.size() > size_ - offset) {
    return ended_early_error(path_, offset + out.size(), size_);
  }
  return read_fully(path_, descriptor_.number(), offset, out, calls_);
}

Result<void> LocalFile::read(uint64_t offset, std::span<const std::span<uint8_t>> parts) const {
  constexpr size_t kMaxParts = 64, kMaxBytes = size_t{1} << 30;
  if (parts.size() == 1) return read(offset, parts[0]);  // a vectored read takes more system time
  std::array<iovec, kMaxParts> places;
  while (!parts.empty()) {
    size_t count = 0, bytes = 0;
    for (; count < std::min(parts.size(), kMaxParts); ++count) {
      if (count > 0 && bytes + parts[count].size() > kMaxBytes) break;
      places[count] = {parts[count].data(), parts[count].size()};
      bytes += parts[count].size();
    }
    const ssize_t got = offset <= size_ && bytes <= size_ - offset && bytes <= kMaxBytes
                            ? calls_.read(descriptor_.number(), {places.data(), count},
                                          static_cast<int64_t>(offset))
                            : -1;
    // After an error or a short read, the parts are read one by one, with retries and error
    // reporting.
    for (size_t i = 0; i < count; ++i) {
      if (got != static_cast<ssize_t>(bytes)) {
        if (Result<void> read = this->read(offset, parts[i]); !read) return read;
      }
      offset += parts[i].size();
    }
    parts = parts.subspan(count);
  }
  return {};
}

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

Error cannot_list(int error_number, const std::string& path) {
  Error error = storage_error(error_number, "list", path);
  error.note.clear();  // it counts the attempts
  return error;
}

// The kind from the directory entry, if the file system provides the type; otherwise, and for
// links, by a stat.
PathKind kind_of_entry(DIR* folder, const dirent& entry) {
  switch (entry.d_type) {
    case DT_DIR:
      return PathKind::kFolder;
    case DT_REG:
      return PathKind::kFile;
    case DT_LNK:
    case DT_UNKNOWN:
      break;
    default:
      return PathKind::kOther;
  }
  struct stat status{};
  if (::fstatat(::dirfd(folder), entry.d_name, &status, 0) != 0) return PathKind::kNothing;
  return kind_from(status.st_mode);
}

}  // namespace

int FileCalls::open(const char* path, int flags) const { return ::open(path, flags); }
int FileCalls::stat(int descriptor, struct stat* out) const { return ::fstat(descriptor, out); }
ssize_t FileCalls::read(int descriptor, void* out, size_t count, int64_t offset) const {
  return ::pread(descriptor, out, count, offset);
}
ssize_t FileCalls::read(int descriptor, std::span<const iovec> parts, int64_t offset) const {
  return ::preadv(descriptor, parts.data(), static_cast<int>(parts.size()), offset);
}
void FileCalls::close(int descriptor) const { ::close(descriptor); }
void FileCalls::pause(int milliseconds) const {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}
const FileCalls& FileCalls::system() {
  static const FileCalls calls;
  return calls;
}

const LocalFiles& LocalFiles::instance() {
  static const LocalFiles files;
  return files;
}

Result<PathStatus> LocalFiles::look_at(const std::string& path) const {
  struct stat status{};
  if (path.find('\0') != std::string::npos) return storage_error(ENOENT, "look at", path);
  if (::stat(path.c_str(), &status) != 0) return storage_error(errno, "look at", path);
  return status_from(status);
}

Result<PathStatus> LocalFiles::list(const std::string& path, const EachEntry& each) const {
  std::unique_ptr<DIR, CloseFolder> folder;
  do {
    folder.reset(::opendir(path.empty() ? "." : path.c_str()));
  } while (!folder && has_no_descriptor(errno) && IdleFiles::of_process().close_one());
  struct stat status{};
  if (!folder || ::fstat(::dirfd(folder.get()), &status) != 0) return cannot_list(errno, path);
  for (;;) {
    errno = 0;  // distinguishes the end from an error
    const dirent* entry = ::readdir(folder.get());
    if (!entry) {
      if (errno != 0) return cannot_list(errno, path);
      return status_from(status);
    }
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (!each(name, kind_of_entry(folder.get(), *entry))) return status_from(status);
  }
}

Result<std::unique_ptr<OpenFile>> LocalFiles::open(const std::string& path,
                                                   const FileIdentity* known) const {
  Result<Opened> opened = open_regular(path, calls_);
  if (!opened) return std::move(opened.error());
  auto file = std::make_unique<LocalFile>(path, opened->descriptor, opened->size, calls_);
  if (known) {
    Result<FileIdentity> identity = file->identity();
    if (!identity) return std::move(identity.error());
    if (*identity != *known) return changed_error(path, *known, *identity);
  }
  return std::unique_ptr<OpenFile>(std::move(file));
}

Result<void> LocalFiles::read_file(const std::string& path, Buffer& out,
                                   const ReadLimits& limits) const {
  Result<Opened> opened = open_regular(path, calls_);
  if (!opened) return std::move(opened.error());
  const Descriptor file(opened->descriptor, calls_);
  if (opened->size > limits.max_bytes) {
    return above_cap_error(path, opened->size, limits.max_bytes);
  }
  try {
    out.resize(opened->size);
  } catch (const std::bad_alloc&) {
    return too_large_error(path, opened->size, "more than the remaining memory");
  }
  return read_fully(path, file.number(), 0, {out.data(), out.size()}, calls_);
}

Result<size_t> LocalFiles::read_prefix(const std::string& path, std::span<uint8_t> out) const {
  Result<Opened> opened = open_regular(path, calls_);
  if (!opened) return std::move(opened.error());
  const Descriptor file(opened->descriptor, calls_);
  const size_t count = std::min<uint64_t>(out.size(), opened->size);
  if (Result<void> read = read_fully(path, file.number(), 0, out.first(count), calls_); !read) {
    return std::move(read.error());
  }
  return count;
}

std::string random_name() {
  static std::atomic<uint64_t> counter{0};
  uint64_t number = 0;
  // Shortly after boot the system may have no randomness yet: then names are only distinct.
  if (::getrandom(&number, sizeof number, GRND_NONBLOCK) != ssize_t{sizeof number}) {
    number = mix64(static_cast<uint64_t>(::getpid()), counter.fetch_add(1));
  }
  return hex_text(number);
}

}  // namespace headrace
