// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/block_cache.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include "headrace/base/clock.h"
#include "headrace/base/random.h"
#include "headrace/storage/delayed_calls.h"
#include "headrace/storage/paths.h"

namespace headrace {
namespace {

constexpr int kMaxActive = 16;  // maximum number of fills, each with a block in memory
constexpr size_t kThreads = 4;  // read blocks from the disk and write them
constexpr double kPollSeconds = 10e-3,
                 kPatienceSeconds = 30;  // time to wait for another process's fill
constexpr double kClosedSeconds = 30;
// Minus a time in seconds it is a time earlier than any block was written, from 2018 to 2065.
constexpr int64_t kReversed = 3'000'000'000;

int64_t seconds_now() { return static_cast<int64_t>(::time(nullptr)); }

}  // namespace

// The part of one block that a read needs.
struct BlockCache::Part {
  BlockName name;
  BlockId id;
  uint64_t begin = 0, bytes = 0;  // in the block
  uint64_t at = 0;                // in the read
};

// A read that waits for blocks.
struct BlockCache::Assembly {
  AsyncRead read;
  Far far;
  std::atomic<size_t> missing;
  std::atomic<bool> failed = false;
};

// A block that is being fetched and stored.
struct BlockCache::Fill {
  BlockName name;
  BlockId id;
  FilePiece piece;
  Far far;
  double begun = 0;
  bool locked = false;  // holds the file lock; other processes wait for it
  // Guarded by the cache's lock until `ready`, immutable afterwards.
  std::vector<std::pair<AssemblyPtr, Part>> reads = {};
  Buffer bytes = {};
  BlockPtr block = {};  // on disk, instead of `bytes`
  bool ready = false;

  bool copy(const Part& part, std::span<uint8_t> out) const {
    if (block) return block->read(part.begin, out, /*may_wait=*/true) == BlockFile::Got::kAll;
    if (bytes.size() < part.begin + part.bytes) return false;
    std::memcpy(out.data(), bytes.data() + part.begin, part.bytes);
    return true;
  }
};

BlockCache::BlockCache(const CacheDirectory& cache, BlockCacheOptions options)
    : block_bytes_(options.block_bytes),
      limit_(checked_limit(options)),
      folder_(BlockFolder::open(cache, why_)),
      threads_(kThreads) {
  MutexLock lock(mutex_);
  if (folder_) {
    needed_ = std::make_unique<NeededBlocks>(*folder_);
    if (!folder_->is_read_only()) return;
    closed_until_ = std::numeric_limits<double>::infinity();
    warn("no blocks can be added to " + folder_->path() + ", which is read-only");
  } else {
    warn("blocks cannot be stored in " + cache.path_of("blocks") + ": " + why_);
  }
}

void BlockCache::settle() {
  for (bool is_idle = false; !is_idle;) {
    {
      MutexLock lock(mutex_);
      while (!fills_.empty() || !files_.empty()) idle_.wait(mutex_);
    }
    threads_.wait();  // which may have begun to fetch other files
    MutexLock lock(mutex_);
    is_idle = fills_.empty() && files_.empty();
  }
}

BlockCache::Counts BlockCache::counts() const {
  MutexLock lock(mutex_);
  Counts out = counts_;
  out.limit = limit_;
  return out;
}

std::string BlockCache::folder() const { return folder_ ? folder_->path() : std::string(); }

std::string BlockCache::caution() {
  MutexLock lock(mutex_);
  return std::exchange(caution_, {});
}

void BlockCache::warn(std::string text) {
  if (!std::exchange(warned_, true)) {
    caution_ = std::move(text) + "; files are read from the storage";
  }
}

std::vector<BlockCache::Part> BlockCache::parts_of(const AsyncRead& read) const {
  std::vector<Part> out;
  const FilePiece& piece = read.piece;
  if (!folder_ || !piece.known || !tells_versions(*piece.known)) return out;
  const uint64_t size = piece.known->size;
  const bool whole = piece.bytes == FilePiece::kWhole;
  if (whole && size > read.max_bytes) return out;
  const uint64_t begin = whole ? 0 : piece.offset, bytes = whole ? size : piece.bytes;
  if (bytes == 0 || begin > size || bytes > size - begin) return out;  // the storage reports this
  const std::string path = stable_path(piece.path);
  for (uint64_t at = begin; at < begin + bytes;) {
    const uint64_t offset = at / block_bytes_ * block_bytes_;
    const uint64_t end = std::min(size, offset + block_bytes_);
    const uint64_t count = std::min(end, begin + bytes) - at;
    out.push_back({.name = name_of_block(path, *piece.known, offset),
                   .id = {path, *piece.known, offset, end - offset},
                   .begin = at - offset,
                   .bytes = count,
                   .at = at - begin});
    at += count;
  }
  return out;
}

BlockPtr BlockCache::find(const BlockName& name, const BlockId& id) {
  {
    MutexLock lock(mutex_);
    if (BlockPtr block = opened_.find(name)) return block;
  }
  BlockPtr block = folder_->find(name, id);
  if (!block) return nullptr;
  block->set_time(seconds_now());
  MutexLock lock(mutex_);
  opened_.add(name, block);
  return block;
}

void BlockCache::submit(std::vector<AsyncRead> reads, const Far& far, const VersionOf& version_of) {
  for (AsyncRead& read : reads) {
    if (folder_ && read.piece.bytes == FilePiece::kWhole && !read.piece.known) {
      serve_file(read, far, version_of);
    } else {
      serve_or_bypass(read, far, /*may_wait=*/false);
    }
  }
}

// Every read is answered: by the storage if there is no memory for the cache's objects.
void BlockCache::serve_or_bypass(AsyncRead& read, const Far& far, bool may_wait) {
  try {
    serve(read, far, may_wait);
  } catch (const std::bad_alloc&) {
    bypass(read, far);
  }
}

void BlockCache::bypass(AsyncRead& read, const Far& far) {
  std::vector<AsyncRead> one;
  one.push_back(std::move(read));
  far(std::move(one));
}

void BlockCache::serve(AsyncRead& read, const Far& far, bool may_wait) {
  std::vector<Part> parts = parts_of(read);
  if (parts.empty()) return bypass(read, far);
  uint64_t bytes = 0;
  for (const Part& part : parts) bytes += part.bytes;
  read.bytes.resize(bytes);
  bool all = true;
  for (const Part& part : parts) {
    const BlockPtr block = find(part.name, part.id);
    if (!block) {
      all = false;
      break;
    }
    const std::span<uint8_t> out(read.bytes.data() + part.at, part.bytes);
    const BlockFile::Got got = block->read(part.begin, out, may_wait);
    if (got == BlockFile::Got::kWouldWait) {
      // shared: std::function must be copyable
      auto later = std::make_shared<AsyncRead>(std::move(read));
      return threads_.call([this, later, far] { serve_or_bypass(*later, far, true); });
    }
    if (got == BlockFile::Got::kDamaged) {
      MutexLock lock(mutex_);
      opened_.erase(part.name);
      folder_->remove(part.name);
      all = false;
      break;
    }
  }
  if (all) {
    {
      MutexLock lock(mutex_);
      ++counts_.hits;
      counts_.hit_bytes += bytes;
    }
    for (const Part& part : parts) note_read(part);
    const auto done = std::move(read.done);
    read.result = {};
    return done(std::move(read));
  }
  {
    MutexLock lock(mutex_);
    ++counts_.misses;
    if (!is_worth_filling(read, parts)) {
      ++counts_.around;
      counts_.far_bytes += bytes;
      parts.clear();
    }
  }
  if (parts.empty()) return bypass(read, far);
  serve_by_fills(read, std::move(parts), far);
}

// By the path without its signature, or a file would count again each time its address is signed.
bool BlockCache::all_fit(const std::string& stable_path, const FileIdentity& identity) {
  const uint64_t file = mix64(mix64(identity.inode, hash_name(stable_path)), identity.size);
  if (known_files_.insert(file).second) known_bytes_ += identity.size;
  return known_bytes_ <= limit_;
}

bool BlockCache::is_worth_filling(const AsyncRead& read, const std::vector<Part>& parts) {
  const bool fit = all_fit(parts.front().id.path, *read.piece.known);
  return now() >= closed_until_ &&
         std::ranges::all_of(parts, [&](const Part& part) REQUIRES_LOCK(mutex_) {
           return fit || part.bytes >= part.id.bytes / 2 || needed_->has(part.name) ||
                  fills_.contains(part.name);
         });
}

// Starts a fill, or joins one in progress.
BlockCache::FillPtr BlockCache::fill_of(const Part& part, const FilePiece& file, const Far& far,
                                        bool urgent) {
  FillPtr& fill = fills_[part.name];
  if (!fill) {
    fill = std::make_shared<Fill>(Fill{.name = part.name,
                                       .id = part.id,
                                       .piece = {.path = file.path,
                                                 .offset = part.id.offset,
                                                 .bytes = part.id.bytes,
                                                 .known = file.known},
                                       .far = far});
    waiting_.push_back(fill);
  }
  if (urgent && fill->begun == 0) {  // moves it ahead of prefetches
    const auto found = std::ranges::find(waiting_, fill);
    const auto first =
        std::ranges::find_if(waiting_, [](const FillPtr& each) { return each->reads.empty(); });
    if (found != waiting_.end() && fill->reads.empty()) waiting_.splice(first, waiting_, found);
  }
  return fill;
}

void BlockCache::serve_by_fills(AsyncRead& read, std::vector<Part> parts, const Far& far) {
  const auto assembly = std::make_shared<Assembly>();
  assembly->far = far;
  assembly->missing = parts.size();
  assembly->read = std::move(read);
  for (const Part& part : parts) {
    FillPtr ready;
    try {
      MutexLock lock(mutex_);
      const FillPtr fill = fill_of(part, assembly->read.piece, far, /*urgent=*/true);
      if (fill->ready) {
        ready = fill;
      } else {
        fill->reads.emplace_back(assembly, part);
      }
    } catch (const std::bad_alloc&) {
      deliver(assembly, false);
      continue;
    }
    if (!ready) continue;
    note_read(part);
    deliver(assembly, ready->copy(part, {assembly->read.bytes.data() + part.at, part.bytes}));
  }
  start_fills();
}

void BlockCache::deliver(const AssemblyPtr& assembly, bool good) {
  if (!good) assembly->failed = true;
  if (--assembly->missing > 0) return;
  if (assembly->failed) {  // the storage reports the appropriate error
    {
      MutexLock lock(mutex_);
      counts_.far_bytes += assembly->read.bytes.size();
    }
    return bypass(assembly->read, assembly->far);
  }
  const auto done = std::move(assembly->read.done);
  assembly->read.result = {};
  done(std::move(assembly->read));
}

void BlockCache::start_fills() {
  while (true) {
    FillPtr fill;
    {
      MutexLock lock(mutex_);
      if (waiting_.empty() || active_ == kMaxActive) return;
      fill = std::move(waiting_.front());
      waiting_.pop_front();
      fill->begun = now();
      ++active_;
    }
    begin(fill);
  }
}

void BlockCache::begin(const FillPtr& fill) {
  const auto on_disk = [&] {
    BlockPtr block = find(fill->name, fill->id);
    if (!block) return false;
    threads_.call([this, fill, block] {
      {
        MutexLock lock(mutex_);
        fill->block = block;
        fill->ready = true;
      }
      finish(fill);
    });
    return true;
  };
  if (on_disk()) return;
  fill->locked = folder_->begin_fill(fill->name);
  if (!fill->locked && now() - fill->begun < kPatienceSeconds) {
    return call_later(kPollSeconds, [this, fill] { threads_.call([this, fill] { begin(fill); }); });
  }
  // Another process may have stored the block in the meantime.
  if (fill->locked && on_disk()) return;
  AsyncRead read{.piece = fill->piece};
  read.done = [this, fill](AsyncRead done) {
    // shared: std::function must be copyable
    auto arrived = std::make_shared<AsyncRead>(std::move(done));
    threads_.call([this, fill, arrived] { fetched(fill, std::move(*arrived)); });
  };
  bypass(read, fill->far);
}

void BlockCache::fetched(const FillPtr& fill, AsyncRead read) {
  {
    MutexLock lock(mutex_);
    if (read.result) counts_.far_bytes += read.bytes.size();
    if (read.result) fill->bytes = std::move(read.bytes);
    fill->ready = true;
  }
  finish(fill);
}

// Serves the reads that wait for the block, and stores it.
void BlockCache::finish(const FillPtr& fill) {
  std::vector<std::pair<AssemblyPtr, Part>> reads;
  {
    MutexLock lock(mutex_);
    reads = std::move(fill->reads);
    fill->reads.clear();
  }
  bool good = true;
  for (const auto& [assembly, part] : reads) {
    const bool copied = fill->copy(part, {assembly->read.bytes.data() + part.at, part.bytes});
    good = good && copied;
    note_read(part);
    deliver(assembly, copied);
  }
  reads.clear();
  if (fill->bytes.size() > 0) store(fill->name, fill->id, fill->bytes.bytes());
  if (fill->block && !good) folder_->remove(fill->name);
  if (fill->locked) folder_->end_fill(fill->name);
  {
    MutexLock lock(mutex_);
    if (fill->block && !good) opened_.erase(fill->name);
    fills_.erase(fill->name);
    --active_;
  }
  start_fills();
  MutexLock lock(mutex_);
  idle_.notify_all();
}

void BlockCache::store(const BlockName& name, const BlockId& id, std::span<const uint8_t> bytes) {
  const auto stays = [this](const std::string& file) {
    MutexLock lock(mutex_);
    return needed_->has(file);
  };
  const BlockFolder::Put put = folder_->put(name, id, bytes, {limit_, stays});
  MutexLock lock(mutex_);
  counts_.evicted += put.evicted;
  if (put.evicted > 0) opened_.close_deleted();
  if (put.error_number == 0) return;
  ++counts_.failed;
  closed_until_ = now() + kClosedSeconds;
  warn(put.no_room ? "no block can be evicted from " + folder_->path() +
                         ", since running processes need all that " + "its limit of " +
                         std::to_string(limit_ >> 20) + " MiB has room for"
                   : "a block could not be kept in " + folder_->path() + ": " +
                         std::generic_category().message(put.error_number));
}

void BlockCache::note_read(const Part& part) {
  BlockPtr finished;
  {
    MutexLock lock(mutex_);
    const std::optional<BlockName> name = needed_->read(part.name, part.bytes);
    if (name) finished = opened_.find(*name);
  }
  // Finished blocks are evicted before all others, the last one first: it is needed again latest.
  if (finished) finished->set_time(kReversed - seconds_now());
}

void BlockCache::will_read(const FilePiece& piece, const Far& far) {
  const AsyncRead read{.piece = piece};
  const std::vector<Part> parts = parts_of(read);
  {
    MutexLock lock(mutex_);
    for (const Part& part : parts) {
      if (!needed_->add(part.name, part.id.bytes, part.bytes, limit_ / 2)) {
        warn("the limit of the disk cache, " + std::to_string(limit_ >> 20) +
             " MiB, is less than twice the working set of this order: use " +
             std::to_string((2 * (needed_->bytes() + part.id.bytes) >> 20) + 1) + " MiB or more");
        break;
      }
      if (!opened_.find(part.name) && now() >= closed_until_) {
        fill_of(part, read.piece, far, /*urgent=*/false);
      }
    }
  }
  start_fills();
}

}  // namespace headrace
