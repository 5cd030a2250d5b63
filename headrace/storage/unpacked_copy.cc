// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/unpacked_copy.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <system_error>
#include <thread>
#include <utility>

#include "headrace/base/byte_stream.h"
#include "headrace/base/registry.h"
#include "headrace/storage/crc32c.h"
#include "headrace/storage/file.h"
#include "headrace/storage/file_times.h"
#include "headrace/storage/growing_file.h"

// Beside the copy "unpacked-NAME" lies "unpacked-NAME.about", written last:
//   8 bytes  "HRUNPAC2"
//   u32      CRC-32C of all that follows
//   text     path of the packed file (u64 length, bytes)
//   i64      when that one's status changed last: it shows a file that was written in place
//   u64      bytes of the copy; i64, i64: when its content and its status changed last. A copy that
//            anybody has touched since is made anew.
//   u8       1 where it ends early; then  text id of the error code, what, hint; i64 offset
// NAME is made from the path, the file's identity, and its first and last bytes: streams end with
// a checksum, so a file that was changed within one tick of its clock shows, too.

namespace headrace {
namespace {

constexpr ErrorCode kNoCache{
    "HR0209", ErrorKind::kConfig, "no place to unpack",
    "The file is packed (gzip, zlib, Zstandard) and can be read by position only after it was "
    "unpacked, which Headrace does once, into the user's cache folder; and there is none. Set "
    "HEADRACE_CACHE to a folder on a disk with room, or unpack the file and open the result."};
const Register<ErrorCode> registered_no_cache(kNoCache);

constexpr ErrorCode kNotWritten{
    "HR0210", ErrorKind::kStorage, "cannot unpack into the cache folder",
    "The unpacked copy of a packed file could not be written into the user's cache folder: the "
    "disk is full, or the folder may not be written. Make room, or set HEADRACE_CACHE to a folder "
    "on another disk. Copies (unpacked-*) may be deleted at any time; they are made again."};
const Register<ErrorCode> registered_not_written(kNotWritten);

constexpr ErrorCode kTooLarge{
    "HR0212", ErrorKind::kResource, "packed file expands too far",
    "Unpacked, the file would have far more bytes than data of records ever has for its size (a "
    "\"zip bomb\"), or more than the cap. If it is sound, unpack it yourself and open the result."};
const Register<ErrorCode> registered_too_large(kTooLarge);

constexpr std::string_view kMagic = "HRUNPAC2";
constexpr size_t kChecksumEnd = 12;
constexpr size_t kInBlock = size_t{1} << 20, kOutBlock = size_t{4} << 20;
constexpr uint64_t kLookEvery = uint64_t{64} << 20;  // at the room that is left

using Passed = std::function<void(uint64_t)>;

std::string bytes_text(uint64_t bytes) {
  char text[32];
  if (bytes < 10'000'000) {
    std::snprintf(text, sizeof text, "%llu bytes", static_cast<unsigned long long>(bytes));
  } else {
    std::snprintf(text, sizeof text, "%.1f GB", double(bytes) / 1e9);
  }
  return text;
}

Error not_written(const std::string& path, const CacheDirectory& cache, std::string why) {
  return {.code = &kNotWritten,
          .what = "could not unpack it into " + cache.path() + ": " + std::move(why),
          .where = {.file = path},
          .hint = "make room there, or set HEADRACE_CACHE to a folder on another disk"};
}

Error not_written(const std::string& path, const CacheDirectory& cache, int error_number) {
  return not_written(path, cache, std::generic_category().message(error_number));
}

// --- What is known of a copy ---------------------------------------------------------------------

Result<std::string> name_of_copy(const File& file) {
  constexpr size_t kEnd = 4096;
  Result<FileIdentity> identity = file.identity();
  if (!identity) return std::move(identity.error());
  ByteWriter out;
  out.bytes(file.path());
  out.number(identity->device);
  out.number(identity->inode);
  out.number(identity->size);
  out.number(identity->modified_ns);
  std::array<uint8_t, kEnd> end;
  const std::span<uint8_t> bytes(end.data(), std::min<uint64_t>(kEnd, file.size()));
  for (const uint64_t offset : {uint64_t{0}, file.size() - bytes.size()}) {
    if (Result<void> read = file.read(offset, bytes); !read) return std::move(read.error());
    out.bytes(std::span<const uint8_t>(bytes));
  }
  char name[40];
  std::snprintf(name, sizeof name, "unpacked-%016llx",
                static_cast<unsigned long long>(XXH3_64bits(out.out.data(), out.out.size())));
  return std::string(name);
}

void write_text(std::string_view text, ByteWriter& out) {
  out.number(uint64_t{text.size()});
  out.bytes(text);
}
std::string read_text(ByteReader& in) { return std::string(in.text(in.number<uint64_t>())); }

// Sizes and times: which file, and which copy of it.
struct Stamp {
  int64_t packed_changed_ns = 0;
  uint64_t bytes = 0;
  int64_t modified_ns = 0, changed_ns = 0;
  bool operator==(const Stamp&) const = default;
};

std::optional<Stamp> stamp_of(const std::string& packed, const std::string& copy) {
  const Result<FileIdentity> found = identity_of(copy);
  if (!found) return {};
  return Stamp{.packed_changed_ns = status_changed_ns(packed),
               .bytes = found->size,
               .modified_ns = found->modified_ns,
               .changed_ns = status_changed_ns(copy)};
}

std::vector<uint8_t> about_copy(const std::string& path, const Stamp& stamp,
                                const std::optional<Error>& damage) {
  ByteWriter out;
  out.bytes(kMagic);
  out.number(uint32_t{0});
  write_text(path, out);
  out.number(stamp.packed_changed_ns);
  out.number(stamp.bytes);
  out.number(stamp.modified_ns);
  out.number(stamp.changed_ns);
  out.number(static_cast<uint8_t>(damage.has_value()));
  if (damage) {
    for (std::string_view text :
         {damage->code->id, std::string_view(damage->what), std::string_view(damage->hint)}) {
      write_text(text, out);
    }
    out.number(damage->where.offset);
  }
  const uint32_t sum = crc32c(std::span<const uint8_t>(out.out).subspan(kChecksumEnd));
  std::memcpy(out.out.data() + kMagic.size(), &sum, sizeof sum);
  return std::move(out.out);
}

// The copy, if it is there and whole.
std::optional<UnpackedCopy> kept_copy(const std::string& path, const std::string& name,
                                      const CacheDirectory& cache) {
  Buffer about;
  if (!cache.read(name + ".about", about)) return {};
  ByteReader in(about.bytes());
  if (in.text(kMagic.size()) != kMagic) return {};
  const auto sum = in.number<uint32_t>();
  if (!in.good() || sum != crc32c(about.bytes().subspan(kChecksumEnd))) return {};
  if (read_text(in) != path) return {};
  Stamp stamp;
  stamp.packed_changed_ns = in.number<int64_t>();
  stamp.bytes = in.number<uint64_t>();
  stamp.modified_ns = in.number<int64_t>();
  stamp.changed_ns = in.number<int64_t>();
  UnpackedCopy copy{.path = cache.path_of(name)};
  if (in.number<uint8_t>() != 0) {
    const std::string id = read_text(in), what = read_text(in), hint = read_text(in);
    const ErrorCode* code = Registry<ErrorCode>::find(id);
    if (!code || code->kind == ErrorKind::kStorage) return {};
    copy.damage = Error{.code = code,
                        .what = what,
                        .where = {.file = path, .offset = in.number<int64_t>()},
                        .hint = hint};
  }
  if (!in.at_end()) return {};
  if (!cache.trusts(name) || stamp_of(path, copy.path) != stamp) return {};
  return copy;
}

// --- One process at a time -----------------------------------------------------------------------

// Held by whoever makes a copy. Where files cannot be locked it holds nothing, and processes may
// make the same copy twice, which costs time and no more.
class MakersLock {
 public:
  MakersLock(std::string path, const Passed& passed) : path_(std::move(path)) {
    for (;;) {
      descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
      if (descriptor_ < 0) return;
      while (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) return;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        try {
          if (passed) passed(0);
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
      release();  // its holder was done, and has removed it
    }
  }
  ~MakersLock() {
    if (held_) ::unlink(path_.c_str());
    release();
  }
  MakersLock(const MakersLock&) = delete;
  MakersLock& operator=(const MakersLock&) = delete;

 private:
  void release() {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
    held_ = false;
  }
  std::string path_;
  int descriptor_ = -1;
  bool held_ = false;
};

// --- Unpacking -----------------------------------------------------------------------------------

class Job {
 public:
  Job(const File& file, Packing packing, const CacheDirectory& cache, const Passed& passed,
      const UnpackLimits& limits)
      : file_(file),
        packing_(packing),
        cache_(cache),
        passed_(passed),
        limits_(limits),
        unpacker_(Unpacker::make(packing)),
        in_(std::min<uint64_t>(kInBlock, std::max<uint64_t>(file.size(), 1))),
        out_(kOutBlock) {}

  Result<UnpackedCopy> run(const std::string& name) {
    copy_ = GrowingFile::create(cache_.path_of(name));
    if (!copy_) return not_written(file_.path(), cache_, errno);
    if (Result<void> room = look_for_room(file_.size()); !room) return std::move(room.error());
    if (Result<void> done = unpack_all(); !done) return std::move(done.error());
    if (Result<void> rest = write_out(); !rest) return std::move(rest.error());
    if (Result<void> kept = keep(name); !kept) return std::move(kept.error());
    return UnpackedCopy{.path = cache_.path_of(name), .damage = std::move(damage_)};
  }

 private:
  Result<void> unpack_all() {
    while (at_ < file_.size() && !damage_) {
      const std::span<uint8_t> block(in_.data(),
                                     std::min<uint64_t>(in_.size(), file_.size() - at_));
      if (Result<void> read = file_.read(at_, block); !read) return read;
      if (Result<void> fed = feed(block); !fed) return fed;
      if (passed_) passed_(at_);
    }
    if (!damage_ && !between_) damage("it ends in the middle of the data");
    return {};
  }

  // Goes on until the block is used up.
  Result<void> feed(std::span<const uint8_t> in) {
    for (;;) {
      if (between_) {
        if (in.empty()) return {};
        if (streams_ > 0 && !begins_another(in)) return {};
        between_ = false;
      }
      const Unpacker::Step step = unpacker_->run(in, std::span(out_.data() + used_, room()));
      in = in.subspan(step.consumed);
      at_ += step.consumed;
      used_ += step.produced;
      if (!step.result) {
        damage_ = step.result.error();
        damage_->where = {.file = file_.path(), .offset = static_cast<int64_t>(at_)};
        return {};
      }
      if (step.ended) {
        between_ = true;
        ++streams_;
        unpacker_->restart();
      }
      const bool full = room() == 0;
      if (full) {
        if (Result<void> written = write_out(); !written) return written;
      }
      if (step.ended || full) continue;
      if (in.empty()) return {};
      if (step.consumed == 0 && step.produced == 0) {
        damage("bytes that lead nowhere");
        return {};
      }
    }
  }

  // What follows a stream: another one, or zeros (of writers to tapes) to the end of the file.
  bool begins_another(std::span<const uint8_t>& in) {
    size_t zeros = 0;
    while (zeros < in.size() && in[zeros] == 0) ++zeros;
    padded_ = padded_ || zeros > 0;
    in = in.subspan(zeros);
    at_ += zeros;
    if (in.empty()) return false;
    // A begin of fewer bytes than a signature has is left to the unpacker to judge.
    const bool same = in.size() < 4 || packing_of(in) == packing_;
    if (packing_ != Packing::kZlib && !padded_ && same) return true;
    damage("other bytes follow the packed data");
    return false;
  }

  void damage(std::string what) {
    damage_ = damaged_packing(std::move(what));
    damage_->where = {.file = file_.path(), .offset = static_cast<int64_t>(at_)};
  }

  size_t room() const { return out_.size() - used_; }

  Result<void> write_out() {
    const uint64_t most = std::min(
        limits_.max_bytes, std::max(limits_.always, file_.size() > UINT64_MAX / limits_.max_ratio
                                                        ? UINT64_MAX
                                                        : file_.size() * limits_.max_ratio));
    if (used_ > most - std::min(most, written_)) {
      return Error{.code = &kTooLarge,
                   .what = bytes_text(file_.size()) + " expand to more than " + bytes_text(most),
                   .where = {.file = file_.path(), .offset = static_cast<int64_t>(at_)},
                   .hint = "if that is meant, unpack it yourself and open the result"};
    }
    if (written_ + used_ >= looked_ + kLookEvery) {
      looked_ = written_ + used_;
      if (Result<void> room = look_for_room(used_); !room) return room;
    }
    if (!copy_->write(written_, std::span(out_.data(), used_))) {
      return not_written(file_.path(), cache_, errno);
    }
    written_ += used_;
    used_ = 0;
    return {};
  }

  Result<void> look_for_room(uint64_t bytes) const {
    struct statvfs disk{};
    if (::statvfs(cache_.path().c_str(), &disk) != 0) return {};
    const uint64_t free = uint64_t{disk.f_bavail} * disk.f_frsize;
    if (free >= bytes && free - bytes >= limits_.leave_free) return {};
    return not_written(file_.path(), cache_,
                       "its disk has " + bytes_text(free) + " free, after " + bytes_text(written_) +
                           " of the copy");
  }

  // The copy gets its name, then the file that says that it is whole.
  Result<void> keep(const std::string& name) {
    if (!copy_->publish(/*replace=*/true)) return not_written(file_.path(), cache_, errno);
    // After a loss of power a copy that counts as whole must be it.
    const int descriptor = ::open(cache_.path_of(name).c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor >= 0) {
      ::fdatasync(descriptor);
      ::close(descriptor);
    }
    std::optional<Stamp> stamp = stamp_of(file_.path(), cache_.path_of(name));
    if (stamp) {
      stamp->packed_changed_ns = packed_changed_ns_;
      stamp->bytes = written_;
    }
    if (!stamp || !cache_.write(name + ".about", about_copy(file_.path(), *stamp, damage_))) {
      const int why = errno;
      ::unlink(cache_.path_of(name).c_str());
      return not_written(file_.path(), cache_, why);
    }
    return {};
  }

  const File& file_;
  const Packing packing_;
  const CacheDirectory& cache_;
  const Passed& passed_;
  const UnpackLimits limits_;
  std::unique_ptr<Unpacker> unpacker_;
  std::unique_ptr<GrowingFile> copy_;
  // Before it is read: a change meanwhile shows.
  const int64_t packed_changed_ns_ = status_changed_ns(file_.path());
  Buffer in_, out_;
  size_t used_ = 0;       // of out_
  uint64_t at_ = 0;       // in the packed file
  uint64_t written_ = 0;  // of the copy
  uint64_t looked_ = 0;
  int64_t streams_ = 0;
  bool between_ = true;  // streams
  bool padded_ = false;
  std::optional<Error> damage_;
};

}  // namespace

Result<UnpackedCopy> unpacked_copy(const std::string& path, Packing packing, const Passed& passed,
                                   const UnpackLimits& limits, const CacheDirectory& cache) {
  Result<File> file = File::open(path);
  if (!file) return std::move(file.error());
  if (cache.path().empty()) {
    return Error{
        .code = &kNoCache,
        .what = "it is packed with " + std::string(name_of(packing)) +
                ", and there is no cache folder to unpack it into",
        .where = {.file = path},
        .hint = "set HEADRACE_CACHE to a folder on a disk with room, or unpack it yourself"};
  }
  Result<std::string> name = name_of_copy(*file);
  if (!name) return std::move(name.error());
  if (std::optional<UnpackedCopy> copy = kept_copy(path, *name, cache)) return std::move(*copy);
  cache.make();
  const MakersLock lock(cache.path_of(*name + ".lock"), passed);
  if (std::optional<UnpackedCopy> copy = kept_copy(path, *name, cache)) return std::move(*copy);
  return Job(*file, packing, cache, passed, limits).run(*name);
}

}  // namespace headrace
