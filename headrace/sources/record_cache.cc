// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/record_cache.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <new>
#include <string>
#include <tuple>
#include <utility>

#include "headrace/base/pages.h"
#include "headrace/base/random.h"
#include "headrace/sources/files_read.h"
#include "headrace/sources/labeled_files.h"
#include "headrace/sources/source_around.h"
#include "headrace/sources/subset.h"

// Note [How a record is kept]: one piece of memory: the number of fields, for each field its bytes'
// offset and count, its scalar and its shape, then the bytes, each field's at a multiple of 64, and
// 64 readable bytes after the last, which decoders may touch. It is written before its address is
// published, and never changed.

namespace headrace {
namespace {

constexpr size_t kSlabBytes = size_t{4} << 20;
constexpr size_t kAlignment = Buffer::kAlignment;

constexpr size_t aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

struct KeptField {
  uint64_t offset = 0, bytes = 0;
  int64_t scalar = 0;
  uint32_t shape_offset = 0, rank = 0;  // sizes as int64
  int32_t annotated_width = 0, annotated_height = 0;
};

struct KeptRecord {
  uint64_t fields = 0;
  uint64_t files = 0;  // digest_of_files()
};

}  // namespace

struct RecordCache::Slab {
  uint8_t* memory = nullptr;
  size_t bytes = 0, used = 0;
};

RecordCache::RecordCache(int64_t records, size_t limit)
    : places_(static_cast<size_t>(records)), limit_(limit) {
  taken_ = places_.size() * sizeof places_[0];
}

RecordCache::~RecordCache() {
  for (const Slab& slab : slabs_) unmap_pages(slab.memory, slab.bytes);
}

void RecordCache::allow(size_t limit) {
  MutexLock lock(mutex_);
  limit_ = std::max(limit_, limit);
}

void* RecordCache::allocate(size_t bytes) {
  MutexLock lock(mutex_);
  if (!slabs_.empty() && bytes <= slabs_.back().bytes - slabs_.back().used) {
    Slab& last = slabs_.back();
    return last.memory + std::exchange(last.used, last.used + bytes);
  }
  // The last slabs are as small as the room that is left.
  const size_t left = limit_ - std::min(limit_, taken_);
  if (bytes > left) return nullptr;
  const size_t slab = std::min(std::max(bytes, kSlabBytes), left);
  try {
    slabs_.push_back({static_cast<uint8_t*>(map_pages(slab)), slab, bytes});
  } catch (const std::bad_alloc&) {
    limit_ = taken_;  // the system has no more: this is the share then
    return nullptr;
  }
  taken_ += slab;
  return slabs_.back().memory;
}

bool RecordCache::find(int64_t record, RecordData& out) const {
  const uint8_t* kept = places_[static_cast<size_t>(record)].load(std::memory_order_acquire);
  if (!kept) {
    misses_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  hits_.fetch_add(1, std::memory_order_relaxed);
  const auto& head = *reinterpret_cast<const KeptRecord*>(kept);
  const auto* fields = reinterpret_cast<const KeptField*>(kept + sizeof head);
  begin_record(record, head.fields, 0, out);
  for (size_t i = 0; i < head.fields; ++i) {
    FieldData& field = out.fields[i];
    field.bytes = {kept + fields[i].offset, fields[i].bytes};
    field.scalar = fields[i].scalar;
    field.annotated_width = fields[i].annotated_width;
    field.annotated_height = fields[i].annotated_height;
    const auto* sizes = reinterpret_cast<const int64_t*>(kept + fields[i].shape_offset);
    field.shape.assign(sizes, sizes + fields[i].rank);
  }
  return true;
}

void RecordCache::keep(int64_t record, const RecordData& data, uint64_t files) {
  std::atomic<const uint8_t*>& place = places_[static_cast<size_t>(record)];
  size_t values = 0, sizes = 0;
  for (const FieldData& field : data.fields) {
    values += aligned(field.bytes.size());
    sizes += field.shape.size();
  }
  read_bytes_.fetch_add(values, std::memory_order_relaxed);
  if (place.load(std::memory_order_acquire)) return;
  const size_t head = sizeof(KeptRecord) + data.fields.size() * sizeof(KeptField);
  const size_t begin = aligned(head + sizes * sizeof(int64_t));
  auto* memory = static_cast<uint8_t*>(allocate(begin + values + Buffer::kPadding));
  if (!memory) return;
  *reinterpret_cast<KeptRecord*>(memory) = {data.fields.size(), files};
  auto* fields = reinterpret_cast<KeptField*>(memory + sizeof(KeptRecord));
  size_t at = begin, shape_at = head;
  for (size_t i = 0; i < data.fields.size(); ++i) {
    const FieldData& field = data.fields[i];
    fields[i] = {.offset = at,
                 .bytes = field.bytes.size(),
                 .scalar = field.scalar,
                 .shape_offset = static_cast<uint32_t>(shape_at),
                 .rank = static_cast<uint32_t>(field.shape.size()),
                 .annotated_width = field.annotated_width,
                 .annotated_height = field.annotated_height};
    if (!field.bytes.empty()) std::memcpy(memory + at, field.bytes.data(), field.bytes.size());
    if (!field.shape.empty()) {
      std::memcpy(memory + shape_at, field.shape.data(), field.shape.size() * sizeof(int64_t));
    }
    at += aligned(field.bytes.size());
    shape_at += field.shape.size() * sizeof(int64_t);
  }
  place.store(memory, std::memory_order_release);
  ++kept_;
}

uint64_t digest_of_files(const Source& source, int64_t record, const std::vector<bool>& wanted) {
  uint64_t digest = 0;
  std::string last;
  for (size_t field = 0; field < wanted.size(); ++field) {
    if (!wanted[field]) continue;
    std::string file = file_of(source, record, field);
    if (file == last) continue;
    last = std::move(file);
    digest = mix64(digest, digest_of_file(last).value_or(0));
  }
  return digest;
}

std::optional<std::string> RecordCache::forget_changed(const Source& source,
                                                       const std::vector<bool>& wanted,
                                                       size_t most_looks) {
  std::optional<std::string> changed;
  size_t looks = 0;
  for (size_t passed = 0; passed < places_.size(); ++passed) {
    const size_t record = next_look_.fetch_add(1, std::memory_order_relaxed) % places_.size();
    const uint8_t* kept = places_[record].load(std::memory_order_acquire);
    if (!kept) continue;
    const auto index = static_cast<int64_t>(record);
    const uint64_t files = digest_of_files(source, index, wanted);
    if (reinterpret_cast<const KeptRecord*>(kept)->files != files) {
      if (!changed) passed = 0;
      if (!changed) changed = source.where(index).file;
      places_[record].store(nullptr, std::memory_order_release);
      --kept_;
    }
    if (++looks >= most_looks && !changed) break;
  }
  return changed;
}

RecordCache::Counts RecordCache::counts() const {
  MutexLock lock(mutex_);
  return {.records = kept_,
          .bytes = taken_,
          .limit = limit_,
          .hits = hits_,
          .misses = misses_,
          .read_bytes = read_bytes_};
}

std::shared_ptr<RecordCache> RecordCache::of(const Source& source, const std::vector<bool>& wanted,
                                             size_t limit) {
  using Key = std::tuple<std::string, int64_t, std::vector<bool>>;
  static Mutex mutex;
  static std::map<Key, std::weak_ptr<RecordCache>>& known =
      *new std::map<Key, std::weak_ptr<RecordCache>>;
  MutexLock lock(mutex);
  std::erase_if(known, [](const auto& entry) { return entry.second.expired(); });
  auto& place = known[{source.identity(), source.size(), wanted}];
  std::shared_ptr<RecordCache> cache = place.lock();
  if (cache) {
    cache->allow(limit);
  } else {
    cache = std::make_shared<RecordCache>(source.size(), limit);
    place = cache;
  }
  return cache;
}

namespace {

class CachedSource final : public SourceAround {
 public:
  CachedSource(SourcePtr source, std::shared_ptr<RecordCache> cache)
      : SourceAround(std::move(source)), cache_(std::move(cache)) {}

  std::string identity() const override { return inner()->identity(); }

  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override {
    for (size_t begin = 0; begin < out.size();) {
      if (cache_->find(indices[begin], out[begin])) {
        ++begin;
        continue;
      }
      // Records that are read anyway are read together.
      size_t end = begin + 1;
      while (end < out.size() && !cache_->find(indices[end], out[end])) ++end;
      // Bytes are what is kept.
      for (RecordData& record : out.subspan(begin, end - begin)) record.by_range = nullptr;
      std::vector<uint64_t> files;
      for (size_t i = begin; i < end; ++i) {
        files.push_back(digest_of_files(*inner(), indices[i], wanted));
      }
      inner()->read(indices.subspan(begin, end - begin), wanted, out.subspan(begin, end - begin));
      for (size_t i = begin; i < end; ++i) {
        if (out[i].result) cache_->keep(indices[i], out[i], files[i - begin]);
      }
      begin = std::min(end + 1, out.size());  // `end` was found
    }
  }

  void pieces(int64_t index, const std::vector<bool>& wanted,
              std::vector<FilePiece>& out) const override {
    if (!cache_->has(index)) inner()->pieces(index, wanted, out);
  }

 private:
  std::shared_ptr<RecordCache> cache_;  // shared: with other loaders
};

}  // namespace

WithRecordCache with_record_cache(const SourcePtr& source, const std::vector<bool>& wanted,
                                  size_t limit) {
  WithRecordCache out{.source = source, .cached = nullptr, .cache = nullptr};
  if (limit == 0 || source->read_style() == ReadStyle::kMemory) return out;
  out.source = with_viewed(source, [&](const SourcePtr& viewed) -> SourcePtr {
    out.cache = RecordCache::of(*viewed, wanted, limit);
    out.cached = viewed;
    return std::make_shared<CachedSource>(viewed, out.cache);
  });
  return out;
}

}  // namespace headrace
