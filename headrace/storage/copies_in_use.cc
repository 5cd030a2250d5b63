// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/copies_in_use.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <utility>

namespace headrace {
namespace {

constexpr const char* kFile = "unpacked-in-use";
constexpr std::string_view kPrefix = "unpacked-";
constexpr size_t kDigits = 16;

// For writing it takes to lock a byte alone; for reading, as in a folder that somebody else has
// filled, to share it.
int open_locks(const CacheDirectory& cache) {
  if (cache.path().empty()) return -1;
  constexpr int kFlags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  const std::string path = cache.path_of(kFile);
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | kFlags, 0644);
  return descriptor >= 0 ? descriptor : ::open(path.c_str(), O_RDONLY | kFlags);
}

bool lock_byte(int descriptor, const std::string& name, short type, int command) {
  const std::optional<uint64_t> number = number_of_copy(name);
  if (descriptor < 0 || !number) return false;
  struct flock byte{};
  byte.l_type = type;
  byte.l_whence = SEEK_SET;
  byte.l_start = static_cast<off_t>(*number >> 2);  // files end before 2^63
  byte.l_len = 1;
  int result;
  do {
    result = ::fcntl(descriptor, command, &byte);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

}  // namespace

std::string name_of_copy(uint64_t number) {
  char name[kPrefix.size() + kDigits + 1];
  std::snprintf(name, sizeof name, "unpacked-%016llx", static_cast<unsigned long long>(number));
  return name;
}

std::optional<uint64_t> number_of_copy(std::string_view name) {
  if (name.size() != kPrefix.size() + kDigits || !name.starts_with(kPrefix)) return {};
  uint64_t number = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + kPrefix.size(), end, number, 16);
  if (error != std::errc() || stop != end || name_of_copy(number) != name) return {};
  return number;
}

CopiesInUse::CopiesInUse(CacheDirectory cache) : cache_(std::move(cache)) {
  cache_.make();
  descriptor_ = open_locks(cache_);
}

// Closing ends the locks when no child has the file open. Unlocking would end the children's.
CopiesInUse::~CopiesInUse() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void CopiesInUse::hold(const std::string& name) {
  (void)lock_byte(descriptor_, name, F_RDLCK, F_OFD_SETLKW);
}

bool when_unused(const CacheDirectory& cache, const std::string& name,
                 const std::function<void()>& call) {
  const int descriptor = open_locks(cache);
  const bool alone = lock_byte(descriptor, name, F_WRLCK, F_OFD_SETLK);
  if (alone) {
    call();
    (void)lock_byte(descriptor, name, F_UNLCK, F_OFD_SETLK);  // for a child forked meanwhile, too
  }
  if (descriptor >= 0) ::close(descriptor);
  return alone;
}

}  // namespace headrace
