// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/block_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <system_error>
#include <thread>
#include <utility>

#include "headrace/base/byte_stream.h"
#include "headrace/base/number_text.h"
#include "headrace/storage/local_files.h"

namespace headrace {
namespace {

constexpr std::string_view kSuffix = ".block", kUnnamed = ".tmp";
constexpr size_t kDigits = 32;
constexpr char kLocks[] = "blocks.lock";
// Bytes of the lock file: byte 0 is locked while counting; half of the others are locked while
// blocks are filled, half while blocks are needed.
constexpr int64_t kHalf = int64_t{1} << 61;
constexpr int kCountingTries = 5000;  // of 1 ms: the process with the lock may be suspended

bool is_block_name(std::string_view file) {
  return file.size() == kDigits + kSuffix.size() && file.ends_with(kSuffix) &&
         file.substr(0, kDigits).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

int64_t byte_of(const BlockName& name, int64_t half) {
  return 1 + half * kHalf + static_cast<int64_t>(name.high & (kHalf - 1));
}

bool write_bytes(int descriptor, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(descriptor, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote == 0) errno = ENOSPC;
    if (wrote <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(wrote));
  }
  return true;
}

bool is_ours(const struct stat& status) {
  return S_ISREG(status.st_mode) && status.st_uid == ::geteuid();
}

}  // namespace

std::string BlockName::file() const {
  return hex_text(high) + hex_text(low) + std::string(kSuffix);
}

std::optional<BlockName> BlockName::from_file(std::string_view file) {
  BlockName out;
  if (!is_block_name(file)) return {};
  std::from_chars(file.data(), file.data() + 16, out.high, 16);
  std::from_chars(file.data() + 16, file.data() + kDigits, out.low, 16);
  return out;
}

BlockName name_of_block(const std::string& path, const FileIdentity& identity, uint64_t offset) {
  const uint64_t numbers[] = {identity.device, identity.inode, identity.size,
                              static_cast<uint64_t>(identity.modified_ns), offset};
  const XXH128_hash_t of_numbers = XXH3_128bits(numbers, sizeof numbers);
  const XXH128_hash_t hash = XXH3_128bits_withSeed(path.data(), path.size(), of_numbers.low64);
  return {hash.high64 ^ of_numbers.high64, hash.low64};
}

std::unique_ptr<BlockFolder> BlockFolder::open(const CacheDirectory& cache, std::string& why) {
  if (cache.path().empty()) {
    why = "there is no cache folder (HEADRACE_CACHE)";
    return nullptr;
  }
  cache.make();
  const std::string path = cache.path_of("blocks");
  ::mkdir(path.c_str(), 0700);
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) {
    why = std::generic_category().message(errno);
    return nullptr;
  }
  struct stat status{};
  const bool own = ::fstat(folder, &status) == 0 && status.st_uid == ::geteuid() &&
                   (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  constexpr int kFlags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  int locks = own ? ::openat(folder, kLocks, O_RDWR | O_CREAT | kFlags, 0600) : -1;
  const bool is_read_only = own && locks < 0 && errno == EROFS;
  if (is_read_only) locks = ::openat(folder, kLocks, O_RDONLY | kFlags);
  if (locks < 0) {
    why = own ? std::generic_category().message(errno) : "others may write to it";
    ::close(folder);
    return nullptr;
  }
  if (::fstat(locks, &status) != 0 || !is_ours(status)) {
    why = std::string(kLocks) + " is not a file of this user";
    ::close(folder);
    ::close(locks);
    return nullptr;
  }
  std::unique_ptr<BlockFolder> out(new BlockFolder(path, folder, locks, is_read_only));
  if (is_read_only) return out;
  out->delete_leftovers();
  out->recount();
  return out;
}

BlockFolder::~BlockFolder() {
  ::close(locks_);
  ::close(folder_);
}

std::unique_ptr<const BlockFile> BlockFolder::find(const BlockName& name,
                                                   const BlockId& wanted) const {
  const std::string file = name.file();
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  const int descriptor = ::openat(folder_, file.c_str(), kFlags);
  if (descriptor < 0) return nullptr;
  struct stat status{};
  if (::fstat(descriptor, &status) != 0 || !is_ours(status)) {
    ::close(descriptor);
    return nullptr;
  }
  auto block = BlockFile::open(descriptor);
  if (block && block->holds(wanted)) return block;
  remove(name);
  return nullptr;
}

void BlockFolder::remove(const BlockName& name) const {
  const std::string file = name.file();
  struct stat status{};
  if (::fstatat(folder_, file.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && is_ours(status)) {
    ::unlinkat(folder_, file.c_str(), 0);
  }
}

bool BlockFolder::set_lock(int64_t byte, short type) const {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  while (::fcntl(locks_, F_OFD_SETLK, &lock) != 0) {
    if (errno == EINTR) continue;
    return errno != EAGAIN && errno != EACCES;  // true if file locks are not supported
  }
  return true;
}

bool BlockFolder::begin_fill(const BlockName& name) const {
  return set_lock(byte_of(name, 0), F_WRLCK);
}
void BlockFolder::end_fill(const BlockName& name) const { set_lock(byte_of(name, 0), F_UNLCK); }
void BlockFolder::need(const BlockName& name) const { set_lock(byte_of(name, 1), F_RDLCK); }
void BlockFolder::release_need(const BlockName& name) const { set_lock(byte_of(name, 1), F_UNLCK); }

bool BlockFolder::begin_counting() const {
  for (int tries = 0; tries < kCountingTries; ++tries) {
    if (set_lock(0, F_WRLCK)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

void BlockFolder::end_counting() const { set_lock(0, F_UNLCK); }

uint64_t BlockFolder::read_total() const {
  uint64_t total = 0;
  return ::pread(locks_, &total, sizeof total, 0) == sizeof total ? total : UINT64_MAX;
}

void BlockFolder::write_total(uint64_t bytes) const {
  // If the total cannot be written, the file is truncated, so that the next reader counts again.
  if (::pwrite(locks_, &bytes, sizeof bytes, 0) == sizeof bytes) return;
  if (::ftruncate(locks_, 0) != 0) return;
}

uint64_t BlockFolder::total_bytes() const {
  uint64_t total = 0;
  for (const Entry& entry : entries()) total += entry.bytes;
  return total;
}

void BlockFolder::recount() {
  MutexLock lock(counting_);
  if (!begin_counting()) return;
  write_total(total_bytes());
  end_counting();
}

std::vector<BlockFolder::Entry> BlockFolder::entries() const {
  std::vector<Entry> out;
  const int again = ::openat(folder_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const listing = again < 0 ? nullptr : ::fdopendir(again);
  if (!listing) {
    if (again >= 0) ::close(again);
    return out;
  }
  while (const dirent* each = ::readdir(listing)) {
    struct stat status{};
    if (!is_block_name(each->d_name) ||
        ::fstatat(folder_, each->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !is_ours(status)) {
      continue;
    }
    out.push_back({each->d_name, static_cast<uint64_t>(status.st_size),
                   int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec});
  }
  ::closedir(listing);
  return out;
}

BlockId BlockFolder::id_of(const std::string& file) const {
  const int descriptor =
      ::openat(folder_, file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return {};
  const auto block = BlockFile::open(descriptor);
  return block ? block->id() : BlockId{};
}

// If the file system does not support unnamed files, a killed process leaves a temporary file that
// no process has locked.
void BlockFolder::delete_leftovers() const {
  const int again = ::openat(folder_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const listing = again < 0 ? nullptr : ::fdopendir(again);
  if (!listing) {
    if (again >= 0) ::close(again);
    return;
  }
  while (const dirent* each = ::readdir(listing)) {
    const std::string_view file = each->d_name;
    if (!file.ends_with(kUnnamed) || file.size() < kDigits ||
        !is_block_name(file.substr(0, kDigits + kSuffix.size()))) {
      continue;
    }
    const int descriptor =
        ::openat(folder_, each->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) continue;
    struct stat status{};
    const bool left = ::fstat(descriptor, &status) == 0 && is_ours(status) &&
                      ::flock(descriptor, LOCK_EX | LOCK_NB) == 0 &&
                      status.st_mtim.tv_sec + 60 < ::time(nullptr);
    if (left) ::unlinkat(folder_, each->d_name, 0);
    ::close(descriptor);
  }
  ::closedir(listing);
}

// A file that is complete but does not have its name yet.
class BlockFolder::NewFile {
 public:
  NewFile(int folder, const std::string& file, std::span<const uint8_t> bytes,
          std::span<const uint8_t> footer)
      : folder_(folder) {
    descriptor_ = ::openat(folder_, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
    if (descriptor_ < 0) {
      name_ = file + "." + random_name() + std::string(kUnnamed);
      descriptor_ = ::openat(folder_, name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
      if (descriptor_ >= 0) (void)::flock(descriptor_, LOCK_EX | LOCK_NB);
    }
    const bool good =
        descriptor_ >= 0 && write_bytes(descriptor_, bytes) && write_bytes(descriptor_, footer);
    if (!good) error_number_ = errno;
  }
  ~NewFile() {
    if (descriptor_ < 0) return;
    if (!name_.empty()) ::unlinkat(folder_, name_.c_str(), 0);
    ::close(descriptor_);
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  int error_number() const { return error_number_; }
  // 0 or errno.
  int give_name(const std::string& file) const {
    const std::string self = "/proc/self/fd/" + std::to_string(descriptor_);
    const int linked =
        name_.empty() ? ::linkat(AT_FDCWD, self.c_str(), folder_, file.c_str(), AT_SYMLINK_FOLLOW)
                      : ::linkat(folder_, name_.c_str(), folder_, file.c_str(), 0);
    return linked == 0 ? 0 : errno;
  }

 private:
  const int folder_;
  int descriptor_ = -1, error_number_ = 0;
  std::string name_;  // a temporary name, if unnamed files are not supported
};

// Whether the file was removed. REQUIRES: counting.
bool BlockFolder::evict(const Entry& entry) const {
  const int64_t needed = byte_of(*BlockName::from_file(entry.file), 1);
  if (!set_lock(needed, F_WRLCK)) return false;
  const bool gone = ::unlinkat(folder_, entry.file.c_str(), 0) == 0 || errno == ENOENT;
  set_lock(needed, F_UNLCK);
  return gone;
}

BlockFolder::Put BlockFolder::put(const BlockName& name, const BlockId& id,
                                  std::span<const uint8_t> bytes, const Room& room) {
  Put out;
  const std::string file = name.file();
  const std::vector<uint8_t> footer = BlockFile::footer(id, bytes);
  const uint64_t more = bytes.size() + footer.size();
  uint64_t total = 0;
  // REQUIRES: counting.
  const auto make_room = [&] {
    total = read_total();
    if (total <= room.limit && more <= room.limit - total) return true;
    std::vector<Entry> blocks = entries();
    std::ranges::sort(blocks, {}, &Entry::used_ns);
    total = 0;
    for (const Entry& each : blocks) total += each.bytes;
    const uint64_t slack = room.limit / 32;  // so that the folder is not enumerated for each block
    for (const Entry& each : blocks) {
      if (total + more + slack <= room.limit) break;
      if (room.stays(each.file) || !evict(each)) continue;
      total -= each.bytes;
      ++out.evicted;
    }
    if (total + more <= room.limit) return true;
    write_total(total);
    out.no_room = true;
    return false;
  };
  const NewFile made(folder_, file, bytes, footer);  // written without the lock
  out.error_number = made.error_number();
  if (out.error_number == 0) {
    MutexLock lock(counting_);
    const bool counting = begin_counting();
    if (counting && make_room()) {
      write_total(
          total +
          more);  // before the block exists: a killed process then counts too much, not too little
      out.error_number = made.give_name(file);
      if (out.error_number != 0) write_total(total);
    } else {
      out.error_number = EDQUOT;
    }
    if (counting) end_counting();
  }
  if (out.error_number == EEXIST) {
    struct stat status{};
    const bool block =
        ::fstatat(folder_, file.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && is_ours(status);
    if (block) out.error_number = 0;  // another process was first
  }
  return out;
}

uint64_t BlockFolder::clear() {
  MutexLock lock(counting_);
  const bool counting = begin_counting();
  uint64_t gone = 0, total = 0;
  for (const Entry& each : entries()) (evict(each) ? gone : total) += each.bytes;
  if (counting) {
    write_total(total);
    end_counting();
  }
  return gone;
}

}  // namespace headrace
