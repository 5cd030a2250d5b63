// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/unpacked_copy.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "headrace/base/byte_stream.h"
#include "headrace/base/number_text.h"
#include "headrace/storage/copy_info.h"
#include "headrace/storage/copy_lock.h"
#include "headrace/storage/file.h"
#include "headrace/storage/file_times.h"
#include "headrace/storage/growing_file.h"
#include "headrace/storage/paths.h"

// Next to the copy "unpacked-NAME" is "unpacked-NAME.about" (copy_info.h). NAME is made from the
// path and the file's identity. The file's first and last bytes are compared, too: streams end with
// a checksum, so this detects a file that was changed within one clock tick.
//
// Note [Trusting a copy]: a copy with the same size and times as when it was complete is used
// without reading it, like any file of records. One with the same size but other times was copied
// with its folder, restored from a backup, or modified. Its hash tells which.

namespace headrace {
namespace {

const ErrorCode kNoCache{
    "HR0209", ErrorKind::kConfig, "no directory to decompress into",
    "The file is compressed (gzip, zlib, Zstandard), and random access needs an uncompressed "
    "copy. Headrace makes this copy once, in the user's cache directory, but there is no such "
    "directory. Set HEADRACE_CACHE to a directory on a disk with enough space, or decompress the "
    "file and open the result."};

const ErrorCode kNotWritten{
    "HR0210", ErrorKind::kStorage, "cannot decompress into the cache directory",
    "The uncompressed copy of a file could not be written to the user's cache directory: the disk "
    "is full, or the directory is not writable. Delete copies there (unpacked-*) that no run is "
    "reading, which are recreated when needed, or set HEADRACE_CACHE to a directory on another "
    "disk."};

const ErrorCode kCopyTooLarge{
    "HR0212", ErrorKind::kResource, "decompressed file too large",
    "Decompressed, the file would be far larger than real data of its compressed size (a \"zip "
    "bomb\"), or exceed the size limit. If it is genuine, decompress it yourself and open the "
    "result."};

constexpr size_t kInBlock = size_t{1} << 20, kOutBlock = size_t{4} << 20;
constexpr uint64_t kLookEvery = uint64_t{64} << 20;  // bytes between checks of free space

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
          .what = "could not decompress it into " + cache.path() + ": " + std::move(why),
          .where = Where{.file = path},
          .hint = "delete " + cache.path_of("unpacked-*") +
                  " that no run is reading, or set HEADRACE_CACHE to a folder on another disk"};
}

Error not_written(const std::string& path, const CacheDirectory& cache, int error_number) {
  return not_written(path, cache, std::generic_category().message(error_number));
}

// --- Records about copies ------------------------------------------------------------------------

uint64_t hash_of(std::span<const uint8_t> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

// Hash of bytes that arrive in pieces.
class RunningHash {
 public:
  RunningHash() { XXH3_64bits_reset(&state_); }
  void add(std::span<const uint8_t> bytes) {
    XXH3_64bits_update(&state_, bytes.data(), bytes.size());
  }
  uint64_t value() const { return XXH3_64bits_digest(&state_); }

 private:
  XXH3_state_t state_;
};

std::string name_for(const std::string& path, const FileIdentity& identity) {
  ByteWriter out;
  out.bytes(stable_path(path));
  out.number(identity.device);
  out.number(identity.inode);
  out.number(identity.size);
  out.number(identity.modified_ns);
  return "unpacked-" + hex_text(hash_of(out.out));
}

// Queried before the file is decompressed, so that a change in the meantime is detected.
Result<PackedState> state_of_packed(const File& file) {
  constexpr size_t kEnd = 4096;
  PackedState state{.status_changed_ns = status_changed_ns(file.path())};
  ByteWriter ends;
  std::array<uint8_t, kEnd> end;
  const std::span<uint8_t> bytes(end.data(), std::min<uint64_t>(kEnd, file.size()));
  for (const uint64_t offset : {uint64_t{0}, file.size() - bytes.size()}) {
    if (Result<void> read = file.read(offset, bytes); !read) return std::move(read.error());
    ends.bytes(std::span<const uint8_t>(bytes));
  }
  state.ends = hash_of(ends.out);
  return state;
}

// The copy of this file in its current state.
struct Wanted {
  const File& file;
  const PackedState packed;
  const std::string name;
  const CacheDirectory& cache;

  std::string path() const { return cache.path_of(name); }
  std::string about() const { return name + ".about"; }
};

// The stored description of the copy, if the file and the copy's size are unchanged.
std::optional<CopyInfo> cached_copy_info(const Wanted& wanted) {
  Buffer bytes;
  if (!wanted.cache.read(wanted.about(), bytes)) return {};
  std::optional<CopyInfo> about = copy_info_from_bytes(bytes.bytes());
  if (!about || about->packed_path != stable_path(wanted.file.path())) return {};
  if (about->packed != wanted.packed || !wanted.cache.trusts(wanted.name)) return {};
  const std::optional<CopyState> now = state_of_copy(wanted.path());
  if (!now || now->bytes != about->copy.bytes) return {};
  return about;
}

std::optional<UnpackedCopy> cached_copy(const Wanted& wanted) {
  std::optional<CopyInfo> about = cached_copy_info(wanted);
  if (!about || state_of_copy(wanted.path()) != about->copy) return {};
  return UnpackedCopy{.path = wanted.path(), .damage = std::move(about->damage)};
}

std::optional<uint64_t> hash_of_file(const std::string& path, const Passed& passed) {
  const Result<File> file = File::open(path);
  if (!file) return {};
  RunningHash hash;
  Buffer block(std::min<uint64_t>(kOutBlock, file->size()));
  for (uint64_t at = 0; at < file->size(); at += block.size()) {
    const std::span<uint8_t> part(block.data(),
                                  std::min<uint64_t>(block.size(), file->size() - at));
    if (!file->read(at, part)) return {};
    hash.add(part);
    if (passed) passed(0);
  }
  return hash.value();
}

// A copy whose times differ, but whose contents match; see Note [Trusting a copy]. Stores its new
// times.
std::optional<UnpackedCopy> proven_copy(const Wanted& wanted, const Passed& passed) {
  std::optional<CopyInfo> about = cached_copy_info(wanted);
  if (!about) return {};
  const std::optional<CopyState> before = state_of_copy(wanted.path());
  if (!before || hash_of_file(wanted.path(), passed) != about->hash) return {};
  if (state_of_copy(wanted.path()) != before) return {};
  about->copy = *before;
  (void)wanted.cache.write(wanted.about(), bytes_from_copy_info(*about));
  return UnpackedCopy{.path = wanted.path(), .damage = std::move(about->damage)};
}

// --- Unpacking -----------------------------------------------------------------------------------

class Job {
 public:
  Job(const Wanted& wanted, Packing packing, const Passed& passed, const UnpackLimits& limits)
      : wanted_(wanted),
        file_(wanted.file),
        packing_(packing),
        cache_(wanted.cache),
        passed_(passed),
        limits_(limits),
        unpacker_(Unpacker::make(packing)),
        in_(std::min<uint64_t>(kInBlock, std::max<uint64_t>(wanted.file.size(), 1))),
        out_(kOutBlock) {}

  Result<UnpackedCopy> run() {
    copy_ = GrowingFile::create(wanted_.path());
    if (!copy_) return not_written(file_.path(), cache_, errno);
    if (Result<void> room = find_room(file_.size()); !room) return std::move(room.error());
    if (Result<void> done = unpack_all(); !done) return std::move(done.error());
    if (Result<void> rest = write_out(); !rest) return std::move(rest.error());
    if (Result<void> room = find_room(0); !room) return std::move(room.error());
    if (Result<void> kept = keep(); !kept) return std::move(kept.error());
    return UnpackedCopy{.path = wanted_.path(), .damage = std::move(damage_)};
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

  // Decompresses until the block is used up.
  Result<void> feed(std::span<const uint8_t> in) {
    for (;;) {
      if (between_) {
        if (in.empty()) return {};
        if (streams_ > 0 && !starts_new_stream(in)) return {};
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
        damage("trailing bytes");
        return {};
      }
    }
  }

  // Whether another stream follows. Skips zeros, as written by tape drives, which may fill the rest
  // of the file.
  bool starts_new_stream(std::span<const uint8_t>& in) {
    size_t zeros = 0;
    while (zeros < in.size() && in[zeros] == 0) ++zeros;
    padded_ = padded_ || zeros > 0;
    in = in.subspan(zeros);
    at_ += zeros;
    if (in.empty()) return false;
    // If fewer bytes than a signature are left, the unpacker decides.
    const bool same = in.size() < 4 || packing_of(in) == packing_;
    if (packing_ != Packing::kZlib && !padded_ && same) return true;
    damage("other bytes follow the compressed data");
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
      return Error{.code = &kCopyTooLarge,
                   .what = bytes_text(file_.size()) + " expand to more than " + bytes_text(most),
                   .where = Where{.file = file_.path(), .offset = static_cast<int64_t>(at_)},
                   .hint = "if it is genuine, decompress it yourself and open the result"};
    }
    if (written_ + used_ >= looked_ + kLookEvery) {
      looked_ = written_ + used_;
      if (Result<void> room = find_room(used_); !room) return room;
    }
    if (!copy_->write(written_, std::span(out_.data(), used_))) {
      return not_written(file_.path(), cache_, errno);
    }
    hash_.add(std::span(out_.data(), used_));
    written_ += used_;
    used_ = 0;
    return {};
  }

  // An error unless the disk has room for this many bytes in addition to leave_free.
  Result<void> find_room(uint64_t bytes) const {
    struct statvfs disk{};
    if (::statvfs(cache_.path().c_str(), &disk) != 0) return {};
    const uint64_t free = uint64_t{disk.f_bavail} * disk.f_frsize;
    if (free >= bytes && free - bytes >= limits_.leave_free) return {};
    return not_written(file_.path(), cache_,
                       "its disk has " + bytes_text(free) + " free, after writing " +
                           bytes_text(written_) + " of the copy");
  }

  // Publishes the copy first, then the file that marks it as complete.
  Result<void> keep() {
    if (!copy_->publish(/*replace=*/true)) return not_written(file_.path(), cache_, errno);
    // After a power failure, a copy that counts as complete must be complete.
    const int descriptor = ::open(wanted_.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor >= 0) {
      ::fdatasync(descriptor);
      ::close(descriptor);
    }
    std::optional<CopyState> state = state_of_copy(wanted_.path());
    if (state) state->bytes = written_;
    const bool kept =
        state && cache_.write(wanted_.about(),
                              bytes_from_copy_info({.packed_path = stable_path(file_.path()),
                                                    .packed = wanted_.packed,
                                                    .copy = *state,
                                                    .hash = hash_.value(),
                                                    .damage = damage_}));
    if (!kept) {
      const int why = errno;
      ::unlink(wanted_.path().c_str());
      return not_written(file_.path(), cache_, why);
    }
    return {};
  }

  const Wanted& wanted_;
  const File& file_;
  const Packing packing_;
  const CacheDirectory& cache_;
  const Passed& passed_;
  const UnpackLimits limits_;
  std::unique_ptr<Unpacker> unpacker_;
  std::unique_ptr<GrowingFile> copy_;
  Buffer in_, out_;
  size_t used_ = 0;       // bytes written to out_
  uint64_t at_ = 0;       // position in the compressed file
  uint64_t written_ = 0;  // bytes of the copy
  RunningHash hash_;      // hash of the copy
  uint64_t looked_ = 0;
  int64_t streams_ = 0;
  bool between_ = true;  // between two streams
  bool padded_ = false;
  std::optional<Error> damage_;
};

}  // namespace

Result<UnpackedCopy> unpacked_copy(const std::string& path, Packing packing,
                                   const CacheDirectory& cache, const Passed& passed,
                                   const UnpackLimits& limits) {
  Result<File> file = File::open(path);
  if (!file) return std::move(file.error());
  if (cache.path().empty()) {
    return Error{.code = &kNoCache,
                 .what = "it is compressed with " + std::string(name_of(packing)) +
                         ", and there is no cache folder to decompress it into",
                 .where = Where{.file = path},
                 .hint =
                     "set HEADRACE_CACHE to a folder on a disk with enough space, or decompress it "
                     "yourself"};
  }
  cache.make();
  Result<FileIdentity> identity = file->identity();
  if (!identity) return std::move(identity.error());
  Result<PackedState> packed = state_of_packed(*file);
  if (!packed) return std::move(packed.error());
  const Wanted wanted{*file, *packed, name_for(path, *identity), cache};
  if (std::optional<UnpackedCopy> copy = cached_copy(wanted)) return std::move(*copy);
  const CopyLock lock(wanted.path() + ".lock", [&] {
    if (passed) passed(0);
  });
  if (std::optional<UnpackedCopy> copy = cached_copy(wanted)) return std::move(*copy);
  if (std::optional<UnpackedCopy> copy = proven_copy(wanted, passed)) return std::move(*copy);
  return Job(wanted, packing, passed, limits).run();
}

}  // namespace headrace
