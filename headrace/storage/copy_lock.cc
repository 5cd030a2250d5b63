// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/copy_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

namespace headrace {

CopyLock::CopyLock(std::string path, const std::function<void()>& waiting)
    : path_(std::move(path)) {
  for (;;) {
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (descriptor_ < 0) return;
    while (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      try {
        waiting();
      } catch (...) {
        ::close(descriptor_);
        throw;
      }
    }
    struct stat mine{}, named{};
    const bool same = ::fstat(descriptor_, &mine) == 0 && ::stat(path_.c_str(), &named) == 0 &&
                      mine.st_ino == named.st_ino && mine.st_dev == named.st_dev;
    held_ = true;
    if (same) return;
    release();  // the holder has finished and removed the file
  }
}

CopyLock::~CopyLock() {
  if (held_) ::unlink(path_.c_str());
  release();
}

void CopyLock::release() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
  held_ = false;
}

}  // namespace headrace
