// SPDX-License-Identifier: Apache-2.0
// Caches records in memory as they are stored, so that they are read from disk once.
//
// The first records read are kept, up to a number of bytes, and never evicted: if a dataset is a
// tenth too large, nine tenths of its records are hits in every epoch, regardless of the order. (An
// LRU cache would have hardly any hits.) Loaders of one process that read the same fields of the
// same source share one cache, and so do the ranks of a machine: Note [A cache for the ranks of a
// machine]. A record whose file has changed is read again, as far as changes are detected: Note
// [What a change of files does to records in memory].
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/base/shared_pages.h"
#include "headrace/sources/cached_record.h"
#include "headrace/sources/source.h"

namespace headrace {

// Which processes share a cache.
enum class CacheScope : uint8_t {
  kAuto,     // kNode if several ranks run on this machine and sharing is possible; else kProcess
  kNode,     // all processes of this user on this machine; an error if not possible
  kProcess,  // no sharing
};

struct RecordCacheOptions {
  size_t bytes = 0;  // total for all processes that share it
  CacheScope scope = CacheScope::kProcess;
  int ranks = 1;  // on this machine

  bool for_node() const {
    return scope == CacheScope::kNode || (scope == CacheScope::kAuto && ranks > 1);
  }
  // The part of these bytes that counts for this process.
  size_t part_of(size_t whole) const {
    const auto parts = static_cast<size_t>(for_node() ? ranks : 1);
    return (whole + parts - 1) / parts;
  }
};

// Thread-safe, and safe for several processes that share its memory.
class RecordCache {
 public:
  struct Counts {
    int64_t records = 0;          // kept
    size_t bytes = 0, limit = 0;  // memory in use, including the table
    int64_t hits = 0, misses = 0;
    int64_t shared_hits = 0;  // hits on records that another process has cached
    uint64_t read_bytes = 0;  // by misses
  };

  // The process's cache for these fields of this source, created if there is none yet. shared: by
  // all loaders that read through it; the last one destroys it. Throws Exception HR0299.
  static std::shared_ptr<RecordCache> of(const Source& source, const std::vector<bool>& wanted,
                                         const RecordCacheOptions& options);
  // `why_unshared`: why the cache is not shared, if sharing was requested. REQUIRES: the first
  // table_bytes() of `pages` are writable.
  RecordCache(int64_t records, std::unique_ptr<SharedPages> pages, bool is_shared,
              std::string why_unshared);
  static size_t table_bytes(int64_t records);

  // Points out.fields to the cached values, which live as long as the cache. False: the record is
  // not cached, or another process has cached it and its files have changed since.
  bool find(int64_t record, const Source& source, const std::vector<bool>& wanted, RecordData& out);
  // Whether find() would succeed; does not count as a hit or miss.
  bool has(int64_t record, const Source& source, const std::vector<bool>& wanted) {
    return usable(record, source, wanted) != nullptr;
  }
  // Stores a copy of the wanted values, if there is room. `files`: digest_of_files() before the
  // record was read.
  void keep(int64_t record, const RecordData& data, const FilesDigest& files);
  Counts counts() const;
  // "64 MiB, shared by the processes of this machine"
  std::string text() const;
  // Why the cache holds less than its limit allows, returned once; otherwise empty.
  std::string caution();
  // Drops records whose files have changed since they were read, so that they are read again, and
  // returns the path of such a file. Checks the next `max_looks` cached records, or all of them if
  // one has changed. `source`, `wanted`: what the records were read from.
  std::optional<std::string> forget_changed(const Source& source, const std::vector<bool>& wanted,
                                            size_t max_looks);

 private:
  static constexpr uint64_t kNothing = 0, kClaimed = 1;  // smaller than any offset
  // Words of the table, in shared memory: two counters, then the offset of each record.
  std::atomic_ref<uint64_t> word(size_t number) const {
    return std::atomic_ref(reinterpret_cast<uint64_t*>(pages_->writable())[number]);
  }
  static constexpr size_t kTaken = 0, kRecords = 1, kHeadWords = 8;
  std::atomic_ref<uint64_t> place(int64_t record) const {
    return word(kHeadWords + static_cast<size_t>(record));
  }
  // Null if there is no record with this many fields at this offset.
  const CachedRecord* kept_at(uint64_t offset, size_t fields) const;
  // The record, if it is cached and its files are unchanged.
  const CachedRecord* usable(int64_t record, const Source& source, const std::vector<bool>& wanted);
  bool is_of_these_files(int64_t record, const CachedRecord& kept, const Source& source,
                         const std::vector<bool>& wanted);
  uint64_t allocate(size_t bytes);
  bool write(uint64_t offset, std::span<const uint8_t> head, const RecordData& data) const;

  const int64_t records_;
  const std::unique_ptr<SharedPages> pages_;
  const bool is_shared_;
  const std::string why_unshared_;
  const uint64_t writer_;  // a random number that identifies this object
  const size_t data_;      // the offset of the first record, after the table
  // A bit per record of another process: its files were compared.
  std::vector<std::atomic<uint64_t>> compared_;
  std::atomic<size_t> next_look_{0};
  std::atomic<int64_t> hits_{0}, misses_{0}, shared_hits_{0};
  std::atomic<uint64_t> read_bytes_{0};
  enum class Room : uint8_t {
    kSome,
    kNone,
    kReported
  };  // the system's memory; kReported: none, reported
  std::atomic<Room> room_{Room::kSome};
};

// Digest of the current status of the files that contain a record's wanted fields; for an
// asynchronous storage, of their status when the source was opened.
FilesDigest digest_of_files(const Source& source, int64_t record, const std::vector<bool>& wanted);

struct WithRecordCache {
  SourcePtr source;
  SourcePtr cached;                    // the cached source
  std::shared_ptr<RecordCache> cache;  // shared: with other loaders; null: not needed
  std::string refusal;                 // why records are not kept; empty: all may be
};

// The source, read through a cache. A view (subset, split) reads through the cache of the
// underlying source. A source that is already in memory gets no cache. Records that are parts of
// shared files (Source::shares_files) are not kept: each would be kept with its whole file.
// `wanted`: the fields that will be read. Throws Exception HR0299.
WithRecordCache with_record_cache(const SourcePtr& source, const std::vector<bool>& wanted,
                                  const RecordCacheOptions& options);

}  // namespace headrace
