// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <system_error>
#include <thread>

#include "headrace/storage/file_times.h"

namespace headrace {
namespace {

const ErrorCode kNothingThere{
    "HR0201", ErrorKind::kStorage, "no such file",
    "There is nothing at this path. The file was moved or deleted after it was listed, a symbolic "
    "link points nowhere, or a network folder is not mounted. Check the path; open the source "
    "again if its files have changed.",
    /*of_record=*/true};

const ErrorCode kNotAllowed{
    "HR0202", ErrorKind::kStorage, "not allowed to read",
    "The file or folder exists, but this user may not read it, or may not enter a folder above it. "
    "Change its permissions (chmod, chown), or run as a user that has them.",
    /*of_record=*/true};

const ErrorCode kNotRegular{"HR0203", ErrorKind::kStorage, "not a regular file",
                            "A record must be a regular file. A folder, pipe, socket or device "
                            "stands at this path; reading it could wait for ever. Remove it "
                            "from the list of files.",
                            /*of_record=*/true};

const ErrorCode kReadFailed{
    "HR0204", ErrorKind::kStorage, "read failed",
    "The operating system could not deliver the bytes, also when asked again after a pause. A disk "
    "or a network file system is failing: look at the kernel's log (dmesg). This is no fault of "
    "the data, so it is never counted as a bad record."};

const ErrorCode kEndedEarly{
    "HR0205", ErrorKind::kData, "file ended early",
    "The file is shorter than it said, so it shrank while it was read: something is writing to the "
    "dataset. Let the writer finish (or write to a temporary name and rename), then read again."};

const ErrorCode kTooLarge{
    "HR0206", ErrorKind::kResource, "file too large",
    "One record's file has more bytes than the cap, or than the machine can hold, so nothing was "
    "read. Pictures are far smaller; a container that ended up among the pictures is the usual "
    "cause."};

const ErrorCode kTooManyOpen{
    "HR0207", ErrorKind::kStorage, "too many open files",
    "The process or the machine has reached its limit of open files. Headrace holds one file open "
    "for each reading thread; something else holds the rest. Raise the limit (ulimit -n)."};

bool may_pass(int error_number) {
  switch (error_number) {
    case EIO:
    case ESTALE:
    case EAGAIN:
    case ETIMEDOUT:
    case ENOLINK:
    case EREMOTEIO:
    case ECOMM:
    case ENETDOWN:
    case ENETUNREACH:
    case ENETRESET:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ECONNRESET:
    case ECONNABORTED:
    case ECONNREFUSED:
    case ENOTCONN:
    case EBUSY:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
      return true;
    default:
      return false;
  }
}

// Counts the tries of one operation and waits between them.
class Tries {
 public:
  explicit Tries(const FileCalls& calls) : calls_(calls) {}
  // After a failure: true when it is worth another try, which it has waited for.
  bool again(int error_number) {
    if (error_number == EINTR) return true;
    if (!may_pass(error_number) || done_ == File::kRetries) return false;
    calls_.pause(File::kFirstPauseMs << (2 * done_++));
    return true;
  }

 private:
  const FileCalls& calls_;
  int done_ = 0;
};

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
  // O_NONBLOCK: opening a named pipe without a writer would wait for ever.
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  if (path.find('\0') != std::string::npos) return storage_error(ENOENT, "open", path);
  Tries tries(calls);
  for (;;) {
    Descriptor file(calls.open(path.c_str(), kFlags), calls);
    struct stat status{};
    if (file.number() < 0 || calls.stat(file.number(), &status) != 0) {
      const int error_number = errno;
      if (tries.again(error_number)) continue;
      return storage_error(error_number, "open", path);
    }
    if (!S_ISREG(status.st_mode)) {
      return Error{.code = &kNotRegular,
                   .what = kind_of_file(status.st_mode) + " stands where a file was expected",
                   .where = {.file = path},
                   .hint = "remove it from the list of files"};
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

Error ended_early(const std::string& path, uint64_t expected, uint64_t found) {
  return Error{
      .code = &kEndedEarly,
      .what = "expected " + std::to_string(expected) + " bytes, found " + std::to_string(found),
      .where = {.file = path, .offset = static_cast<int64_t>(found)},
      .hint = "something writes to the dataset while it is read; let it finish first"};
}

// Fills `out` from `offset`. ESTALE means that the server forgot the descriptor: the next try opens
// the path again, for this call only.
Result<void> read_fully(const std::string& path, int descriptor, uint64_t offset,
                        std::span<uint8_t> out, const FileCalls& calls) {
  Tries tries(calls);
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
    if (got == 0) return ended_early(path, offset + out.size(), offset + done);
    const int error_number = errno;
    if (!tries.again(error_number)) return storage_error(error_number, "read", path, at);
    if (error_number == ESTALE) {
      Result<Opened> fresh = open_regular(path, calls);
      if (!fresh) return std::move(fresh.error());
      reopened.reset(fresh->descriptor);
      descriptor = fresh->descriptor;
    }
  }
  return {};
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

Error storage_error(int error_number, std::string_view doing, const std::string& path,
                    int64_t offset) {
  Error error{.code = &kReadFailed, .where = {.file = path, .offset = offset}};
  const std::string reason = std::generic_category().message(error_number);
  error.what = "could not " + std::string(doing) + " it: " + reason;
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case ENXIO:
    case ENODEV:
      error.code = &kNothingThere;
      error.hint = "check the path; open the source again if its files have changed";
      break;
    case EACCES:
    case EPERM:
      error.code = &kNotAllowed;
      error.hint = "change its permissions (chmod, chown), or run as a user that may read it";
      break;
    case EMFILE:
    case ENFILE:
      error.code = &kTooManyOpen;
      error.hint = "raise the limit of open files (ulimit -n)";
      break;
    default:
      if (may_pass(error_number)) {
        error.note = "tried " + std::to_string(File::kRetries + 1) + " times";
      }
      error.hint = "look at the kernel's log (dmesg) and at the network file system, if it is one";
  }
  return error;
}

Result<File> File::open(const std::string& path, const FileCalls& calls) {
  Result<Opened> opened = open_regular(path, calls);
  if (!opened) return std::move(opened.error());
  return File(path, opened->descriptor, opened->size, calls);
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      calls_(other.calls_) {}

File& File::operator=(File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  std::swap(calls_, other.calls_);
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) calls_->close(descriptor_);
}

Result<void> File::read(uint64_t offset, std::span<uint8_t> out) const {
  if (offset > size_ || out.size() > size_ - offset) {
    return ended_early(path_, offset + out.size(), size_);
  }
  return read_fully(path_, descriptor_, offset, out, *calls_);
}

Result<void> File::read(uint64_t offset, std::span<const std::span<uint8_t>> parts) const {
  constexpr size_t kMostParts = 64, kMostBytes = size_t{1} << 30;
  if (parts.size() == 1) return read(offset, parts[0]);  // a list of places costs the system time
  std::array<iovec, kMostParts> places;
  while (!parts.empty()) {
    size_t count = 0, bytes = 0;
    for (; count < std::min(parts.size(), kMostParts); ++count) {
      if (count > 0 && bytes + parts[count].size() > kMostBytes) break;
      places[count] = {parts[count].data(), parts[count].size()};
      bytes += parts[count].size();
    }
    const ssize_t got =
        offset <= size_ && bytes <= size_ - offset && bytes <= kMostBytes
            ? calls_->read(descriptor_, {places.data(), count}, static_cast<int64_t>(offset))
            : -1;
    // Whatever went wrong or stayed short is read part by part, which tries again and says why.
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

void File::will_read(uint64_t offset, uint64_t bytes) const {
  (void)::posix_fadvise(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(bytes),
                        POSIX_FADV_WILLNEED);
}

Result<FileIdentity> File::identity() const {
  struct stat status{};
  if (calls_->stat(descriptor_, &status) != 0) return storage_error(errno, "look at", path_);
  return identity_from(status);
}

Result<FileIdentity> identity_of(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return storage_error(errno, "look at", path);
  return identity_from(status);
}

Result<void> read_file(const std::string& path, Buffer& out, const ReadLimits& limits,
                       const FileCalls& calls) {
  Result<Opened> opened = open_regular(path, calls);
  if (!opened) return std::move(opened.error());
  const Descriptor file(opened->descriptor, calls);
  const auto too_large = [&](std::string why) {
    return Error{.code = &kTooLarge,
                 .what = "the file has " + std::to_string(opened->size) + " bytes, " + why,
                 .where = {.file = path},
                 .hint = "look at the file: a picture is never that large"};
  };
  if (opened->size > limits.max_bytes) {
    return too_large("the cap is " + std::to_string(limits.max_bytes));
  }
  try {
    out.resize(opened->size);
  } catch (const std::bad_alloc&) {
    return too_large("more than the memory that is left");
  }
  return read_fully(path, file.number(), 0, {out.data(), out.size()}, calls);
}

Result<size_t> read_prefix(const std::string& path, std::span<uint8_t> out,
                           const FileCalls& calls) {
  Result<Opened> opened = open_regular(path, calls);
  if (!opened) return std::move(opened.error());
  const Descriptor file(opened->descriptor, calls);
  const size_t count = std::min<uint64_t>(out.size(), opened->size);
  if (Result<void> read = read_fully(path, file.number(), 0, out.first(count), calls); !read) {
    return std::move(read.error());
  }
  return count;
}

bool file_begins_with(const std::string& path, std::string_view bytes) {
  std::array<uint8_t, 16> first;
  const Result<size_t> read = read_prefix(path, std::span(first).first(bytes.size()));
  return read && *read == bytes.size() && std::memcmp(first.data(), bytes.data(), *read) == 0;
}

bool is_folder(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool is_file(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace headrace
