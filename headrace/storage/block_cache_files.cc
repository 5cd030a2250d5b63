// SPDX-License-Identifier: Apache-2.0
// Files that are records by themselves, in the block cache: each is one block.
#include <algorithm>
#include <ctime>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "headrace/base/clock.h"
#include "headrace/storage/block_cache.h"
#include "headrace/storage/paths.h"

namespace headrace {
namespace {

constexpr uint64_t kMaxFile = uint64_t{1} << 30;  // larger ones are not kept

BlockId id_of_file(const std::string& path, const FileIdentity& version) {
  return {.path = stable_path(path), .identity = version, .offset = 0, .bytes = version.size};
}

BlockName name_of_file(const BlockId& id) {
  return name_of_block(id.path, id.identity, FilePiece::kWhole);
}

}  // namespace

// Reads of a file at the same time are one: the others wait for the first.
void BlockCache::serve_file(AsyncRead& read, const Far& far, const VersionOf& version_of) {
  try {
    MutexLock lock(mutex_);
    const auto [found, is_first] = files_.try_emplace(stable_path(read.piece.path));
    if (!is_first) {
      found->second.emplace_back(std::move(read), far);
      return;
    }
  } catch (const std::bad_alloc&) {
    return bypass(read, far);
  }
  // Looked up only now: the last read of the file, if there was one, has been stored.
  const std::string path = read.piece.path;
  try {
    serve_or_fetch_file(read, far, version_of ? version_of(path) : std::nullopt,
                        /*may_wait=*/false);
  } catch (const std::bad_alloc&) {
    FileReads others = release_file(stable_path(path));
    for (auto& [other, far_of_other] : others) bypass(other, far_of_other);
    bypass(read, far);
  }
}

void BlockCache::serve_or_fetch_file(AsyncRead& read, const Far& far,
                                     const std::optional<FileIdentity>& version, bool may_wait) {
  const bool may_be_kept = version && tells_versions(*version) && version->size <= read.max_bytes;
  const auto got = may_be_kept ? read_block(read, *version, may_wait) : std::nullopt;
  if (got == BlockFile::Got::kAll) {
    read.result = {};
    return deliver_file(std::move(read), /*is_hit=*/true);
  }
  if (got != BlockFile::Got::kWouldWait) return fetch_file(read, far);
  // shared: std::function must be copyable
  auto later = std::make_shared<AsyncRead>(std::move(read));
  threads_.call([this, later, far, version] {
    serve_or_fetch_file(*later, far, version, /*may_wait=*/true);
  });
}

// Empty: the file is not in the folder in this version.
std::optional<BlockFile::Got> BlockCache::read_block(AsyncRead& read, const FileIdentity& version,
                                                     bool may_wait) {
  const BlockId id = id_of_file(read.piece.path, version);
  const BlockName name = name_of_file(id);
  const BlockPtr block = folder_->find(name, id);
  if (!block) return {};
  read.bytes.resize(id.bytes);
  const BlockFile::Got got = block->read(0, {read.bytes.data(), read.bytes.size()}, may_wait);
  if (got == BlockFile::Got::kAll) block->set_time(static_cast<int64_t>(::time(nullptr)));
  if (got == BlockFile::Got::kDamaged) folder_->remove(name);
  return got;
}

// Reads the file from the storage, which says what version it is, and keeps it. The read is
// delivered after that: otherwise files would wait in memory for a slow disk.
void BlockCache::fetch_file(AsyncRead& read, const Far& far) {
  // shared: std::function must be copyable
  const auto done = std::make_shared<std::function<void(AsyncRead)>>();
  std::function<void(AsyncRead)> fetched = [this, done](AsyncRead arrived) {
    // shared: std::function must be copyable
    const auto file = std::make_shared<AsyncRead>(std::move(arrived));
    file->done = std::move(*done);
    threads_.call([this, file] {
      if (file->result) keep_file(*file);
      deliver_file(std::move(*file), /*is_hit=*/false);
    });
  };
  *done = std::exchange(read.done, std::move(fetched));
  bypass(read, far);
}

BlockCache::FileReads BlockCache::release_file(const std::string& path) {
  MutexLock lock(mutex_);
  const auto found = files_.find(path);
  if (found == files_.end()) return {};  // released before memory was refused
  FileReads out = std::move(found->second);
  files_.erase(found);
  idle_.notify_all();
  return out;
}

// Delivers a file to all reads that wait for it; if it could not be read, the others try it too.
void BlockCache::deliver_file(AsyncRead read, bool is_hit) {
  const auto count = [&] {
    MutexLock lock(mutex_);
    ++(is_hit ? counts_.hits : counts_.misses);
    if (is_hit) counts_.hit_bytes += read.bytes.size();
  };
  FileReads others = release_file(stable_path(read.piece.path));
  for (auto& [other, far] : others) {
    try {
      if (!read.result || read.bytes.size() > other.max_bytes) {
        serve_file(other, far, {});
        continue;
      }
      other.bytes.resize(read.bytes.size());
    } catch (const std::bad_alloc&) {
      bypass(other, far);
      continue;
    }
    std::ranges::copy(read.bytes.bytes(), other.bytes.data());
    count();
    const auto done = std::move(other.done);
    other.result = {};
    done(std::move(other));
  }
  count();
  const auto done = std::move(read.done);
  done(std::move(read));
}

void BlockCache::keep_file(const AsyncRead& read) {
  const std::optional<FileIdentity>& version = read.piece.known;
  const bool can_be_kept = version && tells_versions(*version) &&
                           version->size == read.bytes.size() && version->size <= kMaxFile;
  const std::string path = stable_path(read.piece.path);
  {
    MutexLock lock(mutex_);
    counts_.far_bytes += read.bytes.size();
    if (!can_be_kept || now() < closed_until_ || !all_fit(path, *version)) {
      ++counts_.around;
      return;
    }
  }
  const BlockId id = id_of_file(path, *version);
  store(name_of_file(id), id, read.bytes.bytes());
}

}  // namespace headrace
