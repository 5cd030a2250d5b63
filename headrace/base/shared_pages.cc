// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/shared_pages.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <functional>
#include <system_error>
#include <thread>

namespace headrace {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr mode_t kMode = 0600;
constexpr int kLockTries = 10'000;  // of 1 ms
constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

std::string text_of_error(const char* call) {
  return std::string(call) + ": " + std::generic_category().message(errno);
}

// The lock of Note [How processes find shared pages].
class ProcLock {
 public:
  ProcLock() : proc_(::open("/proc", kFolderFlags)) {
    for (int tries = 0; proc_ >= 0 && tries < kLockTries; ++tries) {
      if (::flock(proc_, LOCK_EX | LOCK_NB) == 0 || (errno != EWOULDBLOCK && errno != EINTR)) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  // Unlocks before closing: a child that another thread has forked meanwhile has it open, too.
  ~ProcLock() {
    if (proc_ < 0) return;
    ::flock(proc_, LOCK_UN);
    ::close(proc_);
  }
  ProcLock(const ProcLock&) = delete;
  ProcLock& operator=(const ProcLock&) = delete;

  int proc() const { return proc_; }

 private:
  const int proc_;
};

// Calls `each` for the names in a folder, until it returns false.
void each_name(int folder, const char* path, const std::function<bool(const char* name)>& each) {
  const int again = ::openat(folder, path, kFolderFlags);
  DIR* const listing = again < 0 ? nullptr : ::fdopendir(again);
  if (!listing) {
    if (again >= 0) ::close(again);
    return;
  }
  while (const dirent* entry = ::readdir(listing)) {
    if (entry->d_name[0] != '.' && !each(entry->d_name)) break;
  }
  ::closedir(listing);
}

bool is_shared_file(int file, size_t bytes) {
  struct stat status{};
  return ::fcntl(file, F_GET_SEALS) == kSeals && ::fstat(file, &status) == 0 &&
         status.st_uid == ::geteuid() && (status.st_mode & 07777) == kMode &&
         static_cast<size_t>(status.st_size) == bytes;
}

// A descriptor, or -1.
int find_in(int proc, const std::string& name, size_t bytes) {
  const std::string target = "/memfd:" + name + " (deleted)";
  std::string there(target.size() + 1, '\0');
  int found = -1;
  each_name(proc, ".", [&](const char* process) {
    struct stat status{};
    if (process[0] < '0' || process[0] > '9' || ::fstatat(proc, process, &status, 0) != 0 ||
        status.st_uid != ::geteuid()) {
      return true;
    }
    const std::string folder = std::string(process) + "/fd";
    each_name(proc, folder.c_str(), [&](const char* number) {
      const std::string link = folder + "/" + number;
      const ssize_t length = ::readlinkat(proc, link.c_str(), there.data(), there.size());
      if (length != static_cast<ssize_t>(target.size()) || !there.starts_with(target)) return true;
      // The descriptor number may have been reused since: O_NONBLOCK, so that opening a pipe or a
      // device does not wait.
      found = ::openat(proc, link.c_str(), O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
      if (found >= 0 && !is_shared_file(found, bytes)) {
        ::close(found);
        found = -1;
      }
      return found < 0;
    });
    return found < 0;
  });
  return found;
}

// -1, with the reason in `why`, if the system refuses it. Other processes only accept sealed files,
// which are complete.
int new_file(const std::string& name, size_t bytes, size_t writable, std::string& why) {
  const int file = ::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) {
    why = text_of_error("memfd_create");
    return -1;
  }
  const char* failed = nullptr;
  int reserved = 0;
  if (::fchmod(file, kMode) != 0) failed = "fchmod";
  if (!failed && ::ftruncate(file, static_cast<off_t>(bytes)) != 0) failed = "ftruncate";
  while (!failed && writable > 0 &&
         (reserved = ::fallocate(file, 0, 0, static_cast<off_t>(writable))) != 0) {
    if (errno != EINTR) failed = "fallocate";
  }
  if (!failed && ::fcntl(file, F_ADD_SEALS, kSeals) != 0) failed = "fcntl";
  if (!failed) return file;
  why = text_of_error(failed);
  ::close(file);
  return -1;
}

size_t whole_pages(size_t bytes) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

}  // namespace

std::unique_ptr<SharedPages> SharedPages::shared(const std::string& name, size_t bytes,
                                                 size_t writable, std::string& why) {
  const ProcLock lock;
  if (lock.proc() < 0) {
    why = text_of_error("/proc");
    return nullptr;
  }
  if (::prctl(PR_GET_DUMPABLE) != 1) {
    why = "other processes of this user may not inspect this process (PR_SET_DUMPABLE)";
    return nullptr;
  }
  int file = find_in(lock.proc(), name, bytes);
  if (file < 0) file = new_file(name, bytes, writable, why);
  return mapped(file, bytes, writable, why);
}

std::unique_ptr<SharedPages> SharedPages::alone(size_t bytes, size_t writable, std::string& why) {
  return mapped(new_file("headrace", bytes, writable, why), bytes, writable, why);
}

std::unique_ptr<SharedPages> SharedPages::mapped(int file, size_t bytes, size_t writable,
                                                 std::string& why) {
  if (file < 0) return nullptr;
  std::unique_ptr<SharedPages> out(new SharedPages(file, bytes));
  void* const memory = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) {
    why = text_of_error("mmap");
    return nullptr;
  }
  out->memory_ = static_cast<uint8_t*>(memory);
  if (::mprotect(memory, whole_pages(writable), PROT_READ | PROT_WRITE) != 0) {
    why = text_of_error("mprotect");
    return nullptr;
  }
  return out;
}

SharedPages::~SharedPages() {
  if (memory_) ::munmap(memory_, bytes_);
  ::close(file_);
}

bool SharedPages::write(size_t offset, std::span<const uint8_t> bytes) const {
  while (!bytes.empty()) {
    const ssize_t wrote = ::pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    offset += static_cast<size_t>(wrote);
    bytes = bytes.subspan(static_cast<size_t>(wrote));
  }
  return true;
}

}  // namespace headrace
