// SPDX-License-Identifier: Apache-2.0
// The files of one container: opened when they are first read, closed again when too many are open,
// in this set or in the process (idle_files.h).
//
// Each file is remembered as it was when the set was made. One that was replaced or changed since
// gives a data error (HR0208) instead of bytes that belong elsewhere. Const members may be called
// from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "headrace/storage/file.h"
#include "headrace/storage/idle_files.h"

namespace headrace {

class FileSet final : private IdleFiles::Owner {
 public:
  static constexpr size_t kMostOpen = 256;

  // Throws Exception HR0201..HR0205 if one is not accessible.
  explicit FileSet(std::vector<std::string> paths, size_t most_open = kMostOpen);
  FileSet(const FileSet&) = delete;
  FileSet& operator=(const FileSet&) = delete;
  ~FileSet() override;

  size_t size() const { return paths_.size(); }
  const std::string& path(size_t file) const { return paths_[file]; }
  // Names of the files in messages and keys, if these are not their paths (copies in the cache).
  // Must be called before anything is read. REQUIRES: as many as there are files.
  void show_as(std::vector<std::string> names) { shown_ = std::move(names); }
  const std::string& shown(size_t file) const {
    return shown_.empty() ? paths_[file] : shown_[file];
  }
  const FileIdentity& identity(size_t file) const { return identities_[file]; }
  uint64_t total_bytes() const;
  // Whether any of them does (storage.h).
  bool answers_later() const { return answers_later_; }
  FilePiece piece(size_t file, uint64_t offset, uint64_t bytes) const {
    return {paths_[file], offset, bytes, identities_[file]};
  }

  Result<void> read(size_t file, uint64_t offset, std::span<uint8_t> out) const;
  // Into several places, contiguous in the file.
  Result<void> read(size_t file, uint64_t offset, std::span<const std::span<uint8_t>> parts) const;
  // Asks the system to have these bytes available soon; it may do nothing.
  void will_read(size_t file, uint64_t offset, uint64_t bytes) const;

 private:
  // `users` is negative while the file is being closed.
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
  size_t most_open_;
  bool answers_later_ = false;
  bool closes_ = true;  // false: all of them may remain open
  std::unique_ptr<Slot[]> slots_;
  mutable std::atomic<size_t> open_{0};
};

}  // namespace headrace
