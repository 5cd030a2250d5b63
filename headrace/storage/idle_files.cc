// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/idle_files.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>

namespace headrace {
namespace {

// How many files this process may have open in total.
size_t descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 1 << 20;
  return static_cast<size_t>(limit.rlim_cur);
}

}  // namespace

IdleFiles& IdleFiles::of_process() {
  static IdleFiles& files = *new IdleFiles;  // sets may be destroyed after static objects
  return files;
}

uint64_t IdleFiles::tick() {
  static std::atomic<uint64_t> now{0};
  return ++now;
}

void IdleFiles::add(Owner* owner) {
  MutexLock lock(mutex_);
  owners_.push_back(owner);
}

void IdleFiles::remove(Owner* owner) {
  MutexLock lock(mutex_);
  std::erase(owners_, owner);
}

bool IdleFiles::reserve(size_t files) {
  MutexLock lock(mutex_);
  if (reserved_ + files > descriptors() / 4) return false;
  reserved_ += files;
  return true;
}

void IdleFiles::release(size_t files) {
  MutexLock lock(mutex_);
  reserved_ -= files;
}

void IdleFiles::opening() {
  MutexLock lock(mutex_);
  const size_t most = std::max<size_t>(descriptors() / 4, 1);
  while (open_ >= most && close_oldest()) {
  }
  ++open_;
}

void IdleFiles::closed() {
  MutexLock lock(mutex_);
  --open_;
}

bool IdleFiles::close_one() {
  MutexLock lock(mutex_);
  return close_oldest();
}

bool IdleFiles::close_oldest() {
  for (;;) {
    Owner* found = nullptr;
    uint64_t oldest = kNone;
    for (Owner* owner : owners_) {
      if (const uint64_t time = owner->oldest(); time < oldest) {
        oldest = time;
        found = owner;
      }
    }
    if (!found) return false;
    if (found->close_oldest()) {
      --open_;
      return true;
    }
  }
}

}  // namespace headrace
