// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/record_cache.h"

#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <utility>

#include "headrace/base/mutex.h"
#include "headrace/base/number_text.h"
#include "headrace/base/random.h"
#include "headrace/sources/cached_record.h"
#include "headrace/sources/files_read.h"
#include "headrace/sources/readable_text.h"
#include "headrace/sources/source.h"
#include "headrace/sources/source_around.h"
#include "headrace/sources/subset.h"
#include "headrace/storage/paths.h"

// Note [A cache for the ranks of a machine]: the table and the records are in pages that processes
// share (shared_pages.h), and any of them may be killed at any time. There is no lock in them: a
// process claims a record in the table, takes memory by adding to one counter, writes, and
// publishes the offset. If it dies in between, this record is not cached, its memory stays unused,
// and nothing else happens. A dataset is recognized by Source::identity(), which includes the
// paths, sizes and times of the files that were opened; different limits give different caches.
// Files may have changed since another process read them, so a record of another process is
// compared with its files before it is used for the first time (a stat instead of a read).

namespace headrace {
namespace {

const ErrorCode kNoCache{
    "HR0299", ErrorKind::kConfig, "cache unavailable",
    "cache= keeps records in memory allocated with memfd_create; its table takes 8 bytes per "
    "record of the dataset. The ranks of a machine find their common cache through /proc, and "
    "share the records of datasets that were opened from files with known versions. If ranks "
    "cannot share, cache_scope=\"auto\" gives each its part of the bytes, and \"node\" is an "
    "error. The message says what is missing."};

constexpr char kForm[] = "headrace-records-1";  // the layout of the pages

std::string mebibytes(size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

uint64_t random_number() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

FilesDigest digest_of_later(const Source& source, int64_t record, const std::vector<bool>& wanted) {
  std::vector<FilePiece> pieces;
  source.pieces(record, wanted, pieces);
  FilesDigest out{.is_known = pieces.empty() ? 0u : 1u};
  for (const FilePiece& piece : pieces) {
    const FileIdentity known = piece.known.value_or(FileIdentity{});
    if (known.inode == 0 && known.modified_ns == 0) out.is_known = 0;
    for (const uint64_t number :
         {hash_name(stable_path(piece.path)), piece.offset, piece.bytes, known.inode, known.size,
          static_cast<uint64_t>(known.modified_ns)}) {
      out.value = mix64(out.value, number);
    }
  }
  return out;
}

}  // namespace

FilesDigest digest_of_files(const Source& source, int64_t record, const std::vector<bool>& wanted) {
  if (source.read_style() == ReadStyle::kLater) return digest_of_later(source, record, wanted);
  FilesDigest out;
  std::string last;
  for (size_t field = 0; field < wanted.size(); ++field) {
    if (!wanted[field]) continue;
    std::string file = file_of(source, record, field);
    if (file == last) continue;
    last = std::move(file);
    const std::optional<uint64_t> digest = digest_of_file(last);
    if (!digest) out.is_known = 0;
    out.value = mix64(out.value, digest.value_or(0));
  }
  return out;
}

namespace {

// Why processes cannot share the records of this source; empty if they can.
std::string why_not_shared(const Source& source, const std::vector<bool>& wanted) {
  if (!has_shared_identity(source)) {
    return "other processes cannot recognize this source, only files and folders that were opened";
  }
  if (!digest_of_files(source, 0, wanted).is_known) return "the version of its files is not known";
  return {};
}

std::string name_of(const Source& source, const std::vector<bool>& wanted, size_t bytes) {
  std::string text = source.identity() + "\n" + std::to_string(source.size()) + "\n" +
                     std::to_string(bytes) + "\n";
  for (const bool each : wanted) text += each ? '1' : '0';
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return kForm + ("-" + hex_text(hash.high64)) + hex_text(hash.low64);
}

}  // namespace

RecordCache::RecordCache(int64_t records, std::unique_ptr<SharedPages> pages, bool is_shared,
                         std::string why_unshared)
    : records_(records),
      pages_(std::move(pages)),
      is_shared_(is_shared),
      why_unshared_(std::move(why_unshared)),
      writer_(random_number()),
      data_(table_bytes(records)),
      compared_(is_shared ? static_cast<size_t>(records + 63) / 64 : 0) {}

size_t RecordCache::table_bytes(int64_t records) {
  return padded_value_bytes((kHeadWords + static_cast<size_t>(records)) * sizeof(uint64_t));
}

std::string RecordCache::text() const {
  return mebibytes(pages_->size()) +
         (is_shared_ ? ", shared by the processes of this machine" : ", of this process") +
         (why_unshared_.empty() ? "" : " alone: " + why_unshared_);
}

const CachedRecord* RecordCache::kept_at(uint64_t offset, size_t fields) const {
  if (offset < data_ || offset % Buffer::kAlignment != 0 || offset > pages_->size()) return nullptr;
  return cached_record(pages_->memory() + offset, pages_->size() - offset, fields);
}

bool RecordCache::is_of_these_files(int64_t record, const CachedRecord& kept, const Source& source,
                                    const std::vector<bool>& wanted) {
  if (kept.writer == writer_) return true;
  if (!is_shared_) return false;
  std::atomic<uint64_t>& bits = compared_[static_cast<size_t>(record) / 64];
  const uint64_t bit = uint64_t{1} << (record % 64);
  if (bits.load(std::memory_order_relaxed) & bit) return true;
  const FilesDigest now = digest_of_files(source, record, wanted);
  if (!now.is_known || now != kept.files) return false;
  bits.fetch_or(bit, std::memory_order_relaxed);
  return true;
}

const CachedRecord* RecordCache::usable(int64_t record, const Source& source,
                                        const std::vector<bool>& wanted) {
  const CachedRecord* const kept =
      kept_at(place(record).load(std::memory_order_acquire), wanted.size());
  return kept && is_of_these_files(record, *kept, source, wanted) ? kept : nullptr;
}

bool RecordCache::find(int64_t record, const Source& source, const std::vector<bool>& wanted,
                       RecordData& out) {
  const CachedRecord* const kept = usable(record, source, wanted);
  if (!kept || !read_cached(*kept, record, out)) {
    misses_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  hits_.fetch_add(1, std::memory_order_relaxed);
  if (kept->writer != writer_) shared_hits_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// 0: there is no room.
uint64_t RecordCache::allocate(size_t bytes) {
  const size_t room = pages_->size() - data_;
  uint64_t taken = word(kTaken).load(std::memory_order_relaxed);
  do {
    if (taken > room || bytes > room - taken) return 0;
  } while (!word(kTaken).compare_exchange_weak(taken, taken + bytes, std::memory_order_relaxed));
  return data_ + taken;
}

void RecordCache::keep(int64_t record, const RecordData& data, const FilesDigest& files) {
  for (const FieldData& field : data.fields) {
    read_bytes_.fetch_add(padded_value_bytes(field.bytes.size()), std::memory_order_relaxed);
  }
  if (place(record).load(std::memory_order_relaxed) != kNothing) return;
  const Buffer head = cached_record_header(data, files, writer_);
  uint64_t nothing = kNothing;
  if (!place(record).compare_exchange_strong(nothing, kClaimed, std::memory_order_relaxed)) return;
  const uint64_t offset = allocate(reinterpret_cast<const CachedRecord*>(head.data())->bytes);
  if (offset == 0 || !write(offset, head.bytes(), data)) {
    place(record).store(kNothing, std::memory_order_relaxed);
    Room some = Room::kSome;
    if (offset != 0) room_.compare_exchange_strong(some, Room::kNone);
    return;
  }
  place(record).store(offset, std::memory_order_release);
  word(kRecords).fetch_add(1, std::memory_order_relaxed);
}

bool RecordCache::write(uint64_t offset, std::span<const uint8_t> head,
                        const RecordData& data) const {
  static constexpr std::array<uint8_t, Buffer::kPadding> kZeros{};
  if (!pages_->write(offset, head)) return false;
  offset += head.size();
  for (const FieldData& field : data.fields) {
    if (!pages_->write(offset, field.bytes)) return false;
    offset += padded_value_bytes(field.bytes.size());
  }
  return pages_->write(offset, kZeros);
}

std::optional<std::string> RecordCache::forget_changed(const Source& source,
                                                       const std::vector<bool>& wanted,
                                                       size_t max_looks) {
  std::optional<std::string> changed;
  const auto records = static_cast<size_t>(records_);
  size_t looks = 0;
  for (size_t passed = 0; passed < records; ++passed) {
    const auto record =
        static_cast<int64_t>(next_look_.fetch_add(1, std::memory_order_relaxed) % records);
    uint64_t offset = place(record).load(std::memory_order_acquire);
    const CachedRecord* const kept = kept_at(offset, wanted.size());
    if (!kept || (kept->writer != writer_ && !kept->files.is_known)) continue;
    if (kept->files != digest_of_files(source, record, wanted)) {
      if (!changed) passed = 0;
      if (!changed) changed = source.where(record).file;
      // Another process may have dropped it meanwhile.
      if (place(record).compare_exchange_strong(offset, kNothing, std::memory_order_relaxed)) {
        word(kRecords).fetch_sub(1, std::memory_order_relaxed);
      }
    }
    if (++looks >= max_looks && !changed) break;
  }
  return changed;
}

RecordCache::Counts RecordCache::counts() const {
  const uint64_t room = pages_->size() - data_;
  // A process that was killed may have published a record without counting it.
  const auto records = static_cast<int64_t>(word(kRecords).load(std::memory_order_relaxed));
  return {.records = std::max(records, int64_t{0}),
          .bytes = data_ + std::min(room, word(kTaken).load(std::memory_order_relaxed)),
          .limit = pages_->size(),
          .hits = hits_,
          .misses = misses_,
          .shared_hits = shared_hits_,
          .read_bytes = read_bytes_};
}

std::string RecordCache::caution() {
  Room none = Room::kNone;
  if (!room_.compare_exchange_strong(none, Room::kReported)) return {};
  return "the system has no memory for more records in the cache: " + mebibytes(counts().bytes) +
         " of " + mebibytes(pages_->size()) + " are in use";
}

std::shared_ptr<RecordCache> RecordCache::of(const Source& source, const std::vector<bool>& wanted,
                                             const RecordCacheOptions& options) {
  // A forked process has separate memory.
  using Key = std::tuple<pid_t, std::string, int64_t, std::vector<bool>, size_t, CacheScope>;
  static Mutex mutex;
  static std::map<Key, std::weak_ptr<RecordCache>>& known =
      *new std::map<Key, std::weak_ptr<RecordCache>>;
  MutexLock lock(mutex);
  std::erase_if(known, [](const auto& entry) { return entry.second.expired(); });
  const CacheScope scope = options.for_node() ? options.scope : CacheScope::kProcess;
  auto& place = known[{::getpid(), source.identity(), source.size(), wanted, options.bytes, scope}];
  if (std::shared_ptr<RecordCache> cache = place.lock()) return cache;
  const size_t table = table_bytes(source.size());
  const auto check = [&](size_t bytes) {
    if (bytes > table) return;
    raise(kNoCache,
          "a cache of " + std::to_string(bytes) + " bytes has no room for a table of " +
              std::to_string(source.size()) + " records (" + std::to_string(table) + " bytes)",
          "use a larger cache=, or omit it");
  };
  std::unique_ptr<SharedPages> pages;
  std::string why;
  if (scope != CacheScope::kProcess) {
    check(options.bytes);
    why = why_not_shared(source, wanted);
    if (why.empty()) {
      const std::string name = name_of(source, wanted, options.bytes);
      pages = SharedPages::shared(name, options.bytes, table, why);
    }
    if (!pages && scope == CacheScope::kNode) {
      raise(kNoCache, "cache_scope=\"node\": " + why,
            "cache_scope=\"process\" gives each process a cache of its own");
    }
  }
  const bool is_shared = pages != nullptr;
  if (!pages) {
    const size_t bytes = options.part_of(options.bytes);
    check(bytes);
    std::string refused;
    pages = SharedPages::alone(bytes, table, refused);
    if (!pages) raise(kNoCache, refused, "leave out cache=");
  }
  auto cache = std::make_shared<RecordCache>(source.size(), std::move(pages), is_shared, why);
  place = cache;
  return cache;
}

namespace {

// The names of wanted fields whose files are shared by many records.
std::vector<std::string> fields_in_shared_files(const Source& source,
                                                const std::vector<bool>& wanted) {
  std::vector<std::string> names;
  for (size_t field = 0; field < wanted.size(); ++field) {
    if (wanted[field] && source.shares_files(field)) names.push_back(source.schema()[field].name);
  }
  return names;
}

class CachedSource final : public SourceAround {
 public:
  CachedSource(SourcePtr source, std::shared_ptr<RecordCache> cache,
               const std::vector<bool>& wanted)
      : SourceAround(std::move(source)),
        cache_(std::move(cache)),
        keeps_all_(fields_in_shared_files(*inner(), wanted).empty()) {}

  std::string identity() const override { return inner()->identity(); }

  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override {
    for (size_t begin = 0; begin < out.size();) {
      const auto find = [&](size_t i) {
        return cache_->find(indices[i], *inner(), wanted, out[i]);
      };
      if (!keeps(indices[begin], wanted)) {
        inner()->read(indices.subspan(begin, 1), wanted, out.subspan(begin, 1));
        ++begin;
        continue;
      }
      if (find(begin)) {
        ++begin;
        continue;
      }
      // Records that are not cached are read together.
      size_t end = begin + 1;
      while (end < out.size() && keeps(indices[end], wanted) && !find(end)) ++end;
      // Only bytes are cached.
      for (RecordData& record : out.subspan(begin, end - begin)) record.by_range = nullptr;
      std::vector<FilesDigest> files;
      for (size_t i = begin; i < end; ++i) {
        files.push_back(digest_of_files(*inner(), indices[i], wanted));
      }
      inner()->read(indices.subspan(begin, end - begin), wanted, out.subspan(begin, end - begin));
      for (size_t i = begin; i < end; ++i) {
        if (out[i].result) cache_->keep(indices[i], out[i], files[i - begin]);
      }
      begin = end;
      if (end < out.size() && keeps(indices[end], wanted)) ++begin;  // `end` was found
    }
  }

  void pieces(int64_t index, const std::vector<bool>& wanted,
              std::vector<FilePiece>& out) const override {
    if (!cache_->has(index, *inner(), wanted)) inner()->pieces(index, wanted, out);
  }
  std::string separate_file(int64_t, size_t) const override {
    return {};
  }  // whole bytes are cached

 private:
  bool keeps(int64_t index, const std::vector<bool>& wanted) const {
    for (size_t field = 0; !keeps_all_ && field < wanted.size(); ++field) {
      if (!wanted[field] || !inner()->shares_files(field)) continue;
      const Origin origin = inner()->origin(index, field);
      if (origin.source->shares_files(origin.field)) return false;
    }
    return true;
  }

  std::shared_ptr<RecordCache> cache_;  // shared: with other loaders
  const bool keeps_all_;
};

}  // namespace

WithRecordCache with_record_cache(const SourcePtr& source, const std::vector<bool>& wanted,
                                  const RecordCacheOptions& options) {
  WithRecordCache out{.source = source, .cached = nullptr, .cache = nullptr, .refusal = {}};
  if (options.bytes == 0 || source->read_style() == ReadStyle::kMemory) return out;
  if (const std::vector<std::string> shared = fields_in_shared_files(*source, wanted);
      !shared.empty()) {
    out.refusal = "many records share the files of " + quoted_list(shared, 4) +
                  ", and each would be kept with its whole file";
    // Others of a combination are kept.
    if (source->origins().size() == 1) return out;
  }
  out.source = with_viewed(source, [&](const SourcePtr& viewed) -> SourcePtr {
    out.cache = RecordCache::of(*viewed, wanted, options);
    out.cached = viewed;
    return std::make_shared<CachedSource>(viewed, out.cache, wanted);
  });
  return out;
}

}  // namespace headrace
