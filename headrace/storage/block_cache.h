// SPDX-License-Identifier: Apache-2.0
// A cache on local disk for remote files: blocks of 8 MiB, shared by all processes of the machine
// (block_folder.h). All reads from asynchronous storages go through it.
//
// - Reads of a file whose identity is known are served from blocks. A file that is a record by
//   itself, and so is read whole, is one block of its own size, named by the version that the
//   storage knows from a listing, an inspection or its last answer. All other reads go to the
//   storage.
// - A block is fetched whole if it was announced (will_read), if a read needs at least half of it,
//   or if all files read so far fit into the limit. Otherwise only the requested bytes are read,
//   and nothing is kept: with a small cache and random reads, a whole block would be fetched for
//   each record.
// - Each block is fetched once, by one process; others wait for it. A file by itself is kept after
//   it was read, if all files read so far fit into the limit.
// - Blocks whose next use is farthest away are evicted first: blocks whose announced reads are
//   done, the most recently finished first, then the least recently used. Announced blocks that are
//   not yet finished stay.
// - If the folder is full or damaged, reads go to the storage; if it is read-only, only the blocks
//   in it are used. caution() reports it.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/storage/block_folder.h"
#include "headrace/storage/burst_threads.h"
#include "headrace/storage/needed_blocks.h"
#include "headrace/storage/open_blocks.h"
#include "headrace/storage/storage.h"

namespace headrace {

// How much disk space the cache may use (block_cache_options.cc).
struct BlockCacheOptions {
  uint64_t limit = 0;  // bytes on disk
  uint64_t block_bytes = uint64_t{8} << 20;
};

// The limit. Throws Exception HR0298 if it is smaller than a few blocks.
uint64_t checked_limit(const BlockCacheOptions& options);

// HEADRACE_DISK_CACHE; 0 if it is not set, or "0". Throws Exception HR0298 if it is not a number.
uint64_t limit_from_environment();

class BlockCache {
 public:
  // The cache of asynchronous storages in this process; null: none. The user's cache, created if
  // HEADRACE_DISK_CACHE or use() requests one, is never destroyed. A forked process gets its own
  // with the same limit, and abandons that of its parent.
  static BlockCache* in_use();
  // While the result is held, the user's cache folder, as set in the environment, is in use with
  // this limit or a larger one requested elsewhere. Throws Exception HR0298 if the limit is too
  // small.
  using UsePtr = std::shared_ptr<BlockCache>;  // shared: by its readers, which do not own the cache
  static UsePtr use(uint64_t limit);
  // For tests: replaces the cache of the process. Returns the previous one.
  static BlockCache* exchange(BlockCache* cache);

  // Throws Exception HR0298.
  BlockCache(const CacheDirectory& cache, BlockCacheOptions options);
  ~BlockCache() { settle(); }
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  // Waits until all blocks in flight are stored.
  void settle() EXCLUDES_LOCK(mutex_);

  using Far = std::function<void(std::vector<AsyncRead>)>;  // submits directly to the storage
  using VersionOf = std::function<std::optional<FileIdentity>(const std::string& path)>;
  // `version_of`: AsyncStorage::version_of.
  void submit(std::vector<AsyncRead> reads, const Far& far, const VersionOf& version_of)
      EXCLUDES_LOCK(mutex_);
  // All of these bytes will be read soon.
  void will_read(const FilePiece& piece, const Far& far) EXCLUDES_LOCK(mutex_);

  struct Counts {
    int64_t hits = 0, misses = 0;  // reads served from blocks, and the rest
    int64_t around = 0;            // misses for which no block was fetched
    uint64_t hit_bytes = 0, far_bytes = 0;
    int64_t evicted = 0, failed = 0;  // blocks
    uint64_t limit = 0;
  };
  Counts counts() const EXCLUDES_LOCK(mutex_);
  void set_limit(uint64_t limit) { limit_ = limit; }
  std::string folder() const;  // empty: there is none
  // A problem that prevents caching, returned once; empty if there is nothing new.
  std::string caution() EXCLUDES_LOCK(mutex_);

 private:
  struct Part;
  struct Assembly;
  struct Fill;
  using AssemblyPtr = std::shared_ptr<Assembly>;  // shared: by the fills that it waits for
  using FillPtr = std::shared_ptr<Fill>;          // shared: by its pending callbacks

  std::vector<Part> parts_of(const AsyncRead& read) const;
  BlockPtr find(const BlockName& name, const BlockId& id) EXCLUDES_LOCK(mutex_);
  void serve_or_bypass(AsyncRead& read, const Far& far, bool may_wait) EXCLUDES_LOCK(mutex_);
  static void bypass(AsyncRead& read, const Far& far);
  void serve(AsyncRead& read, const Far& far, bool may_wait) EXCLUDES_LOCK(mutex_);
  // Files that are records by themselves (block_cache_files.cc).
  void serve_file(AsyncRead& read, const Far& far, const VersionOf& version_of)
      EXCLUDES_LOCK(mutex_);
  void serve_or_fetch_file(AsyncRead& read, const Far& far,
                           const std::optional<FileIdentity>& version, bool may_wait)
      EXCLUDES_LOCK(mutex_);
  std::optional<BlockFile::Got> read_block(AsyncRead& read, const FileIdentity& version,
                                           bool may_wait) EXCLUDES_LOCK(mutex_);
  void fetch_file(AsyncRead& read, const Far& far) EXCLUDES_LOCK(mutex_);
  void keep_file(const AsyncRead& read) EXCLUDES_LOCK(mutex_);
  void deliver_file(AsyncRead read, bool is_hit) EXCLUDES_LOCK(mutex_);
  using FileReads = std::vector<std::pair<AsyncRead, Far>>;
  FileReads release_file(const std::string& path) EXCLUDES_LOCK(mutex_);
  // Counts the file as read; whether all files that were read fit into the limit.
  bool all_fit(const std::string& stable_path, const FileIdentity& identity) REQUIRES_LOCK(mutex_);
  // Adds a block to the folder.
  void store(const BlockName& name, const BlockId& id, std::span<const uint8_t> bytes)
      EXCLUDES_LOCK(mutex_);
  bool is_worth_filling(const AsyncRead& read, const std::vector<Part>& parts)
      REQUIRES_LOCK(mutex_);
  void serve_by_fills(AsyncRead& read, std::vector<Part> parts, const Far& far)
      EXCLUDES_LOCK(mutex_);
  FillPtr fill_of(const Part& part, const FilePiece& file, const Far& far, bool urgent)
      REQUIRES_LOCK(mutex_);
  void start_fills() EXCLUDES_LOCK(mutex_);
  void begin(const FillPtr& fill);
  void fetched(const FillPtr& fill, AsyncRead read) EXCLUDES_LOCK(mutex_);
  void finish(const FillPtr& fill) EXCLUDES_LOCK(mutex_);
  void deliver(const AssemblyPtr& assembly, bool good) EXCLUDES_LOCK(mutex_);
  void note_read(const Part& part) EXCLUDES_LOCK(mutex_);
  void warn(std::string text) REQUIRES_LOCK(mutex_);

  const uint64_t block_bytes_;
  std::atomic<uint64_t> limit_;
  std::string why_;  // why there is no folder
  const std::unique_ptr<BlockFolder> folder_;

  mutable Mutex mutex_;
  Condition idle_;
  Counts counts_ GUARDED_BY(mutex_);
  std::string caution_ GUARDED_BY(mutex_);
  bool warned_ GUARDED_BY(mutex_) = false;
  double closed_until_ GUARDED_BY(mutex_) = 0;  // no fills before: blocks cannot be stored
  uint64_t known_bytes_ GUARDED_BY(mutex_) = 0;
  std::unordered_set<uint64_t> known_files_ GUARDED_BY(mutex_);
  OpenBlocks opened_ GUARDED_BY(mutex_);
  std::unordered_map<BlockName, FillPtr, HashBlockName> fills_ GUARDED_BY(mutex_);
  std::list<FillPtr> waiting_ GUARDED_BY(mutex_);  // fills that have not begun
  int active_ GUARDED_BY(mutex_) = 0;
  // The files that are being read, by their stable paths, and the other reads of them.
  std::unordered_map<std::string, FileReads> files_ GUARDED_BY(mutex_);
  std::unique_ptr<NeededBlocks> needed_ GUARDED_BY(mutex_);
  BurstThreads threads_;
};

}  // namespace headrace
