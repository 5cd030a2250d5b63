// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/cache_directory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "headrace/storage/file.h"
#include "headrace/storage/local_files.h"

namespace headrace {
namespace {

// mkdir -p, for this user only.
void make_folders(const std::string& path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    ::mkdir(path.substr(0, slash).c_str(), 0700);
    if (slash == std::string::npos) return;
  }
}

bool write_all(int descriptor, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(descriptor, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(wrote));
  }
  return true;
}

// Writes a file under a unique name. If the file system supports it, the file has no name until it
// is complete, so that a killed process leaves nothing.
bool write_new(const std::string& folder, const std::string& path,
               std::span<const std::span<const uint8_t>> parts) {
  int descriptor = ::open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
  const bool nameless = descriptor >= 0;
  if (!nameless) descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) return false;
  bool good = true;
  for (const std::span<const uint8_t>& part : parts) good = good && write_all(descriptor, part);
  bool named = !nameless;
  if (good && nameless) {
    const std::string self = "/proc/self/fd/" + std::to_string(descriptor);
    named = ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0;
  }
  good = ::close(descriptor) == 0 && good && named;
  if (!good && named) ::unlink(path.c_str());
  return good;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

CacheDirectory CacheDirectory::of_user() {
  if (const char* own = std::getenv("HEADRACE_CACHE")) return CacheDirectory(own);
  // The XDG specification: a relative path counts as not set.
  if (std::string base = variable("XDG_CACHE_HOME"); base.starts_with('/')) {
    return CacheDirectory(base + "/headrace");
  }
  if (std::string home = variable("HOME"); home.starts_with('/')) {
    return CacheDirectory(home + "/.cache/headrace");
  }
  return CacheDirectory("");
}

void CacheDirectory::make() const {
  if (!path_.empty()) make_folders(path_);
}

bool CacheDirectory::trusts(const std::string& name) const {
  constexpr mode_t kByOthers = S_IWGRP | S_IWOTH;
  struct stat status{};
  if (::stat(path_.c_str(), &status) == 0 && (status.st_mode & kByOthers) == 0) return true;
  return ::lstat(path_of(name).c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         status.st_uid == ::geteuid() && (status.st_mode & kByOthers) == 0;
}

bool CacheDirectory::read(const std::string& name, Buffer& out) const {
  return !path_.empty() && trusts(name) && read_file(path_of(name), out).has_value();
}

// A file server may discard a file that another machine has replaced; accessing a mapped page of it
// then kills the process with SIGBUS.
bool may_be_mapped(int64_t file_system) {
  constexpr int64_t kElsewhere[] = {0x6969,       // NFS
                                    0x517B,       // SMB
                                    0xFE534D42,   // SMB2
                                    0xFF534D42,   // CIFS
                                    0x65735546,   // FUSE, with any backend
                                    0x0BD00BD0,   // Lustre
                                    0x00C36400,   // Ceph
                                    0x47504653,   // GPFS
                                    0x19830326,   // BeeGFS
                                    0x5346414F,   // AFS
                                    0x73757245,   // Coda
                                    0x01021997};  // 9P
  return std::ranges::count(kElsewhere, file_system & 0xFFFFFFFF) == 0;
}

MappedEntry::~MappedEntry() { ::munmap(const_cast<uint8_t*>(data_), size_); }

std::shared_ptr<const MappedEntry> CacheDirectory::map(const std::string& name,
                                                       uint64_t min_bytes) const {
  if (path_.empty() || !trusts(name)) return nullptr;
  const int descriptor = ::open(path_of(name).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return nullptr;
  struct stat status{};
  struct statfs system{};
  void* data = MAP_FAILED;
  const bool here = ::fstatfs(descriptor, &system) == 0 && may_be_mapped(system.f_type);
  const bool large = here && ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
                     static_cast<uint64_t>(status.st_size) >= std::max<uint64_t>(min_bytes, 1);
  const auto size = static_cast<size_t>(status.st_size);
  if (large) data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
  ::close(descriptor);
  if (data == MAP_FAILED) return nullptr;
  return std::make_shared<const MappedEntry>(static_cast<const uint8_t*>(data), size);
}

bool CacheDirectory::write(const std::string& name,
                           std::span<const std::span<const uint8_t>> parts) const {
  if (path_.empty()) return false;
  make();
  const std::string temporary = path_ + "/" + name + "." + random_name() + ".tmp";
  if (!write_new(path_, temporary, parts)) return false;
  if (::rename(temporary.c_str(), (path_ + "/" + name).c_str()) == 0) return true;
  ::unlink(temporary.c_str());
  return false;
}

}  // namespace headrace
