// SPDX-License-Identifier: Apache-2.0
// The interface of a storage: stat, list, open, read at an offset, many reads at once.
//
// The path's scheme selects the storage: "memory://photos/a.jpg" is in the storage registered as
// "memory"; a path without a scheme is a local file. A storage is implemented in one file that
// registers its StorageRecord. Formats do not refer to storages: they use file.h, file_set.h and
// folder_entries.h with paths.
//
// Errors are made by storage_error(): HR0201 not found, HR0202 permission denied, HR0203 not a
// regular file, HR0204 could not be read, after temporary errors were retried. Reading may also
// fail with HR0205 (the file ended early), HR0206 (too large) or HR0208 (replaced or changed). All
// const members may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"

namespace headrace {

// Distinguishes a file from one that replaces or changes it. Storages without devices and inodes
// put other values there (a hash of the ETag).
struct FileIdentity {
  uint64_t device = 0, inode = 0, size = 0;
  int64_t modified_ns = 0;
  bool operator==(const FileIdentity&) const = default;
};

enum class PathKind : uint8_t { kNothing, kFile, kFolder, kOther };

// The object at a path; follows links.
struct PathStatus {
  PathKind kind = PathKind::kNothing;
  FileIdentity identity = {};
  // When anything about the file last changed (ctime), which programs cannot set: it reveals a file
  // that was modified in place and had its modification time restored. 0 if the storage has no such
  // time.
  int64_t status_changed_ns = 0;
};

struct ReadLimits {
  uint64_t max_bytes = uint64_t{2} << 30;  // per file
};

// An open file, as a storage implements it. Other code uses File.
class OpenFile {
 public:
  virtual ~OpenFile() = default;
  virtual uint64_t size() const = 0;  // when the file was opened
  // Fills all of `out`. If the file ends before that, it is a data error.
  virtual Result<void> read(uint64_t offset, std::span<uint8_t> out) const = 0;
  // Reads contiguous bytes into several buffers; unless overridden, one after the other.
  virtual Result<void> read(uint64_t offset, std::span<const std::span<uint8_t>> parts) const;
  virtual Result<FileIdentity> identity() const = 0;
  // The same, if it is known without a request: only for asynchronous storages.
  virtual std::optional<FileIdentity> known() const { return {}; }
  // Hints that these bytes will be read soon; may do nothing.
  virtual void will_read(uint64_t offset, uint64_t bytes) const { (void)offset, (void)bytes; }
  // The bytes, if all of them are in memory (held_file.h), where they stay as long as this exists.
  virtual std::optional<std::span<const uint8_t>> held(uint64_t offset, uint64_t bytes) const {
    (void)offset, (void)bytes;
    return {};
  }
  virtual size_t held_bytes() const { return 0; }
};

// A piece of a file.
struct FilePiece {
  static constexpr uint64_t kWhole = UINT64_MAX;  // as `bytes`: the whole file, regardless of its
                                                  // size
  std::string path = {};
  uint64_t offset = 0, bytes = kWhole;
  std::optional<FileIdentity> known = {};  // expected identity; otherwise HR0208
  // Other records need exactly the same piece: those that are read ahead at the same time share
  // its memory.
  bool shared = false;
};

// A read that completes later. `done` is called once, with the read itself, from any thread,
// without holding locks of the storage; it must not throw or wait for another read.
struct AsyncRead {
  FilePiece piece = {};
  uint64_t max_bytes = ReadLimits().max_bytes;  // of a whole file; a larger one is HR0206
  Buffer bytes = {};                            // complete if `result` is good
  Result<void> result = {};
  std::function<void(AsyncRead)> done = {};
  // Once stopped, the bytes are no longer needed: the request may end early, with an error.
  std::stop_token unneeded = {};
};

class Storage {
 public:
  virtual ~Storage() = default;

  virtual Result<PathStatus> look_at(const std::string& path) const = 0;
  // The same for a file whose index is at its end: an asynchronous storage also requests its first
  // and last bytes, and caches them for the following reads.
  virtual Result<PathStatus> look_at_ends(const std::string& path) const { return look_at(path); }
  // Calls `each` for all entries of a folder, unsorted, without "." and "..", until it returns
  // false. Returns the folder's status from before its entries were read, so that changes during
  // reading are detected later. A dangling link is kNothing. If a folder cannot be read to its end,
  // that is an error: an incomplete list would look like any other, and records would be missing
  // silently.
  using EachEntry = std::function<bool(std::string_view name, PathKind kind)>;
  virtual Result<PathStatus> list(const std::string& path, const EachEntry& each) const = 0;
  // With `known`, an asynchronous storage requests nothing yet: each read compares the identity.
  virtual Result<std::unique_ptr<OpenFile>> open(const std::string& path,
                                                 const FileIdentity* known) const = 0;
  // The whole file. `out` keeps its memory if it is large enough; its contents are undefined after
  // an error.
  virtual Result<void> read_file(const std::string& path, Buffer& out,
                                 const ReadLimits& limits) const = 0;
  // Reads the first bytes of the file: fills `out`, or reads to the end if the file is shorter.
  // Returns how many bytes.
  virtual Result<size_t> read_prefix(const std::string& path, std::span<uint8_t> out) const = 0;

  // Whether the storage is asynchronous: requests take so long that many must be in flight. Then
  // read-ahead submits them, and no thread waits.
  virtual bool is_async() const { return false; }
  // Starts all reads. Synchronous storages read immediately, on the calling thread.
  virtual void submit(std::vector<AsyncRead> reads) const;
};

struct StorageRecord {
  std::string_view name;  // "memory": for paths that begin with memory://
  std::string_view doc;
  std::string_view example;  // a path
  std::function<const Storage&()> storage;
};

// The storage of a path.
const Storage& storage_of(std::string_view path);
// The part before "://", empty without one; whether or not such a storage exists.
std::string_view scheme_of(std::string_view path);
inline bool is_async(std::string_view path) { return storage_of(path).is_async(); }
// Adds a range if it is in an asynchronous storage.
inline void add_piece(FilePiece piece, std::vector<FilePiece>& out) {
  if (is_async(piece.path)) out.push_back(std::move(piece));
}
// Returns the path if it is local, for code that supports only local files (another library, a
// writer). Otherwise throws Exception HR0214, which names `who`.
const std::string& local_path(const std::string& path, std::string_view who);

// The error for a file that is not the one that was opened (HR0208).
Error changed_error(const std::string& path, const FileIdentity& known, const FileIdentity& now);

}  // namespace headrace
