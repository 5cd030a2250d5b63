// SPDX-License-Identifier: Apache-2.0
// The files of one container. Files are opened when they are first read, and closed again when too
// many are open, in this set or in the process (idle_files.h).
//
// The set stores the identity of each file at its creation. Reading a file that was replaced or
// changed since is a data error (HR0208), so bytes of different versions are never mixed. Const
// members may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"
#include "headrace/storage/file.h"
#include "headrace/storage/idle_files.h"

namespace headrace {

class FileSet final : private IdleFiles::Owner {
 public:
  static constexpr size_t kMaxOpen = 256;

  // Throws Exception HR0201..HR0205 if a file is not accessible.
  explicit FileSet(std::vector<std::string> paths, size_t max_open = kMaxOpen);
  FileSet(const FileSet&) = delete;
  FileSet& operator=(const FileSet&) = delete;
  ~FileSet() override;

  size_t size() const { return paths_.size(); }
  const std::string& path(size_t file) const { return paths_[file]; }
  // Sets the names of the files in messages and keys, if these are not their paths (copies in the
  // cache). Must be called before anything is read. REQUIRES: one name per file.
  void show_as(std::vector<std::string> names) { shown_ = std::move(names); }
  const std::string& shown(size_t file) const {
    return shown_.empty() ? paths_[file] : shown_[file];
  }
  const FileIdentity& identity(size_t file) const { return identities_[file]; }
  uint64_t total_bytes() const;
  // Whether any file is in an asynchronous storage (storage.h).
  bool is_async() const { return is_async_; }
  FilePiece piece(size_t file, uint64_t offset, uint64_t bytes) const {
    return {paths_[file], offset, bytes, identities_[file]};
  }

  Result<void> read(size_t file, uint64_t offset, std::span<uint8_t> out) const;
  // Reads contiguous bytes into several buffers.
  Result<void> read(size_t file, uint64_t offset, std::span<const std::span<uint8_t>> parts) const;
  // Hints that these bytes will be read soon; may do nothing.
  void will_read(size_t file, uint64_t offset, uint64_t bytes) const;

 private:
  // Negative `users`: the file is being closed.
  struct Slot {
    std::atomic<int64_t> users{0};
    std::atomic<const File*> file{nullptr};
    std::atomic<uint64_t> last_used{0};
  };
  class Use;
  template <class Call>
  Result<void> with_open(size_t file, const Call& call) const;
  Result<void> open(size_t file) const;
  Slot* oldest_slot() const;
  uint64_t oldest() const override;
  bool close_oldest() override { return close_one(); }
  bool close_one() const;

  std::vector<std::string> paths_, shown_;
  std::vector<FileIdentity> identities_;
  size_t max_open_;
  bool is_async_ = false;
  bool closes_ = true;  // false: all files may remain open
  std::unique_ptr<Slot[]> slots_;
  mutable std::atomic<size_t> open_{0};
};

// --- Ranges, all requested at once ---
// For containers whose records need many parts of a file together (column chunks of a row group).

struct FileRange {
  size_t file = 0;  // index in the set
  uint64_t offset = 0, bytes = 0;
};

using RangeBytes = Result<std::vector<Buffer>>;  // one for each range

// Calls `done` once: on the calling thread for local files, otherwise on any thread, where it must
// not block or throw. A range beyond the end of its file is HR0205, before anything is requested.
// The set is not used after the call. `unneeded`: as in AsyncRead.
void fetch_ranges(const FileSet& files, std::span<const FileRange> ranges,
                  std::function<void(RangeBytes)> done, const std::stop_token& unneeded = {});
// The blocking form; cancels the requests at the deadline of this thread's reads.
RangeBytes read_ranges(const FileSet& files, std::span<const FileRange> ranges);

}  // namespace headrace
