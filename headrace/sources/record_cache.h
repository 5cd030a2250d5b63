// SPDX-License-Identifier: Apache-2.0
// Records kept in memory as they are stored, so that they are read from disk once.
//
// The first records read stay, up to a number of bytes, and are never evicted: of a
// dataset that is a tenth too large, nine tenths are hits in every epoch, whatever the order. (A
// cache that forgets the oldest would have hardly any.) Loaders of one process that read the same
// fields of the same source share one, and so do the ranks of a machine: Note [A cache for the
// ranks of a machine]. A record whose file was written again is read again, as far as files are
// looked at: Note [What a change of files does to records in memory].
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
#include "headrace/sources/kept_record.h"
#include "headrace/sources/source.h"

namespace headrace {

// Which processes share a cache.
enum class CacheScope : uint8_t {
  kAuto,     // kNode for a job with several ranks on this machine, as far as that is possible
  kNode,     // all of this user on this machine, or it is an error
  kProcess,  // none
};

struct RecordCacheOptions {
  size_t bytes = 0;  // for all processes together that share it
  CacheScope scope = CacheScope::kProcess;
  int ranks = 1;  // of this machine

  bool for_node() const {
    return scope == CacheScope::kNode || (scope == CacheScope::kAuto && ranks > 1);
  }
  // The part of these bytes for which this process answers.
  size_t part_of(size_t whole) const {
    const auto parts = static_cast<size_t>(for_node() ? ranks : 1);
    return (whole + parts - 1) / parts;
  }
};

// Thread-safe, and safe for several processes where they share its memory.
class RecordCache {
 public:
  struct Counts {
    int64_t records = 0;          // kept
    size_t bytes = 0, limit = 0;  // memory taken, table included
    int64_t hits = 0, misses = 0;
    int64_t shared_hits = 0;  // of these hits, on records that another process has kept
    uint64_t read_bytes = 0;  // by misses
  };

  // The process's cache for these fields of this source, created if there is none yet. shared:
  // every loader that reads through it; it goes with the last of them. Throws Exception HR0299.
  static std::shared_ptr<RecordCache> of(const Source& source, const std::vector<bool>& wanted,
                                         const RecordCacheOptions& options);
  // `why_alone`: where processes could share it and do not. REQUIRES: pages with a table_bytes() of
  // memory at their beginning.
  RecordCache(int64_t records, std::unique_ptr<SharedPages> pages, bool is_shared,
              std::string why_alone);
  static size_t table_bytes(int64_t records);

  // Points out.fields to the cached values, which live as long as the cache. False: it is not
  // cached, or another process has kept it and its files are not those of then.
  bool find(int64_t record, const Source& source, const std::vector<bool>& wanted, RecordData& out);
  // The same, without counting it.
  bool has(int64_t record, const Source& source, const std::vector<bool>& wanted) {
    return usable(record, source, wanted) != nullptr;
  }
  // Keeps a copy of the wanted values, where there is room.
  // files: digest_of_files() before it was read.
  void keep(int64_t record, const RecordData& data, const FilesDigest& files);
  Counts counts() const;
  // "64 MiB, shared by the processes of this machine"
  std::string text() const;
  // Why it keeps less than its limit allows, once; else empty.
  std::string caution();
  // Forgets records whose files have changed since they were read, which are then read again; the
  // path of such a file. Looks at the next `most_looks` of those that are kept, and where one has
  // changed at all. source, wanted: what the records were read from.
  std::optional<std::string> forget_changed(const Source& source, const std::vector<bool>& wanted,
                                            size_t most_looks);

 private:
  static constexpr uint64_t kNothing = 0, kClaimed = 1;  // smaller than any offset
  // Two counts, then the offset of each record; all in memory that processes share.
  std::atomic_ref<uint64_t> word(size_t number) const {
    return std::atomic_ref(reinterpret_cast<uint64_t*>(pages_->writable())[number]);
  }
  static constexpr size_t kTaken = 0, kRecords = 1, kHeadWords = 8;
  std::atomic_ref<uint64_t> place(int64_t record) const {
    return word(kHeadWords + static_cast<size_t>(record));
  }
  // Null where this is no offset of a record with so many fields.
  const KeptRecord* kept_at(uint64_t offset, size_t fields) const;
  // The record, if it is kept and is this source's.
  const KeptRecord* usable(int64_t record, const Source& source, const std::vector<bool>& wanted);
  bool is_of_these_files(int64_t record, const KeptRecord& kept, const Source& source,
                         const std::vector<bool>& wanted);
  uint64_t allocate(size_t bytes);
  bool write(uint64_t offset, std::span<const uint8_t> head, const RecordData& data) const;

  const int64_t records_;
  const std::unique_ptr<SharedPages> pages_;
  const bool is_shared_;
  const std::string why_alone_;
  const uint64_t keeper_;  // a number that no other object has
  const size_t data_;      // where records begin, after the table
  // A bit for each record of another process whose files were compared.
  std::vector<std::atomic<uint64_t>> compared_;
  std::atomic<size_t> next_look_{0};
  std::atomic<int64_t> hits_{0}, misses_{0}, shared_hits_{0};
  std::atomic<uint64_t> read_bytes_{0};
  enum class Room : uint8_t { kSome, kNone, kSaid };  // whether the system has more memory
  std::atomic<Room> room_{Room::kSome};
};

// Digest of the files that contain a record's wanted fields, as they are now; in an asynchronous
// storage, as they were when the source was opened.
FilesDigest digest_of_files(const Source& source, int64_t record, const std::vector<bool>& wanted);

struct WithRecordCache {
  SourcePtr source;
  SourcePtr cached;                    // the cached source
  std::shared_ptr<RecordCache> cache;  // shared: with other loaders; null: none is needed
};

// The source, read through a cache. A view (subset, split) reads through the cache
// of the source that it views. One that lies in memory already needs none. `wanted`: the fields
// that will be read. Throws Exception HR0299.
WithRecordCache with_record_cache(const SourcePtr& source, const std::vector<bool>& wanted,
                                  const RecordCacheOptions& options);

}  // namespace headrace
