// SPDX-License-Identifier: Apache-2.0
// The folder of blocks that all processes of a machine share: HEADRACE_CACHE/blocks.
//
// Blocks appear atomically: the file is written without a name and then linked, so a killed process
// leaves nothing. Locks on bytes of one file, "blocks.lock", record which process fills which block
// and which blocks are still needed: the system releases them when a process ends. The same file
// also holds the total size of all blocks. Blocks are added while this file is locked, so that the
// limit holds for any number of processes.
//
// Only blocks are deleted: regular files of this user that are named like a block. Links are not
// followed. All members may be called from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/storage/block_file.h"
#include "headrace/storage/cache_directory.h"

namespace headrace {

// The name of a block: a hash of the path, the identity and the offset.
struct BlockName {
  uint64_t high = 0, low = 0;
  bool operator==(const BlockName&) const = default;
  std::string file() const;  // "0123456789abcdef0123456789abcdef.block"
  static std::optional<BlockName> from_file(std::string_view file);  // empty: not a block's name
};
struct HashBlockName {
  size_t operator()(const BlockName& name) const { return name.low; }
};
// Whether the identity has a value that changes with the content.
inline bool tells_versions(const FileIdentity& identity) {
  return identity.size > 0 && (identity.inode != 0 || identity.modified_ns != 0);
}
// `path`: without signatures that expire (stable_path). `offset`: FilePiece::kWhole if the block is
// the whole file, whatever its size.
BlockName name_of_block(const std::string& path, const FileIdentity& identity, uint64_t offset);

class BlockFolder {
 public:
  // Null, with the reason in `why`, if the folder cannot be created or is not private to this user.
  static std::unique_ptr<BlockFolder> open(const CacheDirectory& cache, std::string& why);
  ~BlockFolder();
  BlockFolder(const BlockFolder&) = delete;
  BlockFolder& operator=(const BlockFolder&) = delete;

  const std::string& path() const { return path_; }
  // Whether it is on a read-only file system: blocks can be found, but not added or removed.
  bool is_read_only() const { return is_read_only_; }
  // The block, or null. A block that is damaged or has another id is deleted.
  std::unique_ptr<const BlockFile> find(const BlockName& name, const BlockId& wanted) const;
  void remove(const BlockName& name) const;

  struct Room {
    uint64_t limit = 0;
    // Whether this process must keep that block.
    std::function<bool(const std::string& file)> stays;
  };
  struct Put {
    int error_number = 0;  // errno; 0: stored
    bool no_room = false;  // evicting all evictable blocks would not suffice
    int64_t evicted = 0;   // blocks
  };
  // Adds a block, and evicts others if the limit requires it.
  Put put(const BlockName& name, const BlockId& id, std::span<const uint8_t> bytes,
          const Room& room) EXCLUDES_LOCK(counting_);

  // Only one process at a time fills a block. True if this one may; false while another does.
  bool begin_fill(const BlockName& name) const;
  void end_fill(const BlockName& name) const;
  // While any process needs a block, no process evicts it.
  void need(const BlockName& name) const;
  void release_need(const BlockName& name) const;

  struct Entry {
    std::string file;
    uint64_t bytes = 0;
    int64_t used_ns = 0;  // the smallest is evicted first
  };
  std::vector<Entry> entries() const;
  // The block's id, for display; its path is empty if the file is not a block.
  BlockId id_of(const std::string& file) const;
  uint64_t total_bytes() const;
  // Deletes all blocks that no process needs. Returns the number of bytes deleted.
  uint64_t clear() EXCLUDES_LOCK(counting_);

 private:
  class NewFile;
  BlockFolder(std::string path, int folder, int locks, bool is_read_only)
      : path_(std::move(path)), folder_(folder), locks_(locks), is_read_only_(is_read_only) {}
  bool set_lock(int64_t byte, short type) const;
  bool begin_counting() const;
  void end_counting() const;
  uint64_t read_total() const;
  void write_total(uint64_t bytes) const;
  bool evict(const Entry& entry) const;
  void recount() EXCLUDES_LOCK(counting_);
  void delete_leftovers() const;

  const std::string path_;
  const int folder_, locks_;
  const bool is_read_only_;
  Mutex counting_;  // among threads of this process, which share their file locks
};

}  // namespace headrace
