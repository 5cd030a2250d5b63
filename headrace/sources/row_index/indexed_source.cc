// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/row_index/indexed_source.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "headrace/kernels/content_hash.h"
#include "headrace/sources/subset.h"
#include "headrace/storage/cache_directory.h"
#include "headrace/storage/file.h"

namespace headrace {
namespace {

// What a picture is called while it is decoded: the address of this, in the record's own memory.
struct PictureName {
  int64_t slot;
  uint64_t hash;
};

// What one picture of a record is to get.
struct Found {
  size_t field = 0;
  PictureName name{};
  std::optional<RowIndexFile::Place> place;
};

// Of a file that is not read: what tells it from one that replaces or changes it.
std::optional<uint64_t> identity_hash(const File& file) {
  const Result<FileIdentity> identity = file.identity();
  if (!identity) return std::nullopt;
  const uint64_t numbers[] = {identity->device, identity->inode, identity->size,
                              static_cast<uint64_t>(identity->modified_ns)};
  return content_hash({reinterpret_cast<const uint8_t*>(numbers), sizeof numbers});
}

// Of a video in memory: its size and both ends, where containers have their tables. All of its
// bytes would cost as much as the index saves.
uint64_t ends_hash(std::span<const uint8_t> bytes) {
  constexpr size_t kEnd = size_t{64} << 10;
  const size_t end = std::min(bytes.size(), kEnd);
  return content_hash(bytes.first(end), content_hash(bytes.last(end), bytes.size()));
}

}  // namespace

std::optional<uint64_t> indexed_hash(FieldKind kind, const FieldData& data) {
  if (data.bytes.empty()) return data.file ? identity_hash(*data.file) : std::nullopt;
  return kind == FieldKind::kVideo ? ends_hash(data.bytes) : content_hash(data.bytes);
}

IndexedFields::IndexedFields(const Source& source) {
  for (size_t i = 0; i < source.schema().size(); ++i) {
    const Field& field = source.schema()[i];
    const bool indexed = is_picture(field.kind) || field.kind == FieldKind::kVideo;
    if (field.encoded && indexed) fields_.push_back(i);
  }
  key_ = {source.fingerprint(), source.size(), static_cast<int64_t>(fields_.size())};
}

IndexedSource::IndexedSource(SourcePtr source, std::unique_ptr<RowIndexFile> file, bool learn)
    : SourceAround(std::move(source)), pictures_(*inner()), file_(std::move(file)), learn_(learn) {}

void IndexedSource::read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
                         std::span<RecordData> out) const {
  for (RecordData& record : out) {  // what was known of the record before
    for (FieldData& data : record.fields) data.row_index = {};
  }
  inner()->read(indices, wanted, out);
  for (RecordData& record : out) {
    if (record.result) attach(wanted, record);
  }
}

// All of it stands in one piece of the record's memory: the names, then the row indexes.
void IndexedSource::attach(const std::vector<bool>& wanted, RecordData& record) const {
  constexpr size_t kMost = 8;  // pictures of a record; more go without
  std::array<Found, kMost> found;
  size_t count = 0, bytes = 0;
  for (size_t i = 0; i < std::min(pictures_.fields().size(), kMost); ++i) {
    const size_t field = pictures_.fields()[i];
    FieldData& data = record.fields[field];
    if (!data.row_index.known.empty()) continue;  // the source brings it
    if (!wanted[field] || (data.bytes.empty() && !data.file)) continue;
    Found& next = found[count];
    next = {field, {pictures_.slot(record.index, i), 0}, {}};
    next.place = file_->place_of(next.name.slot);
    if (!next.place && !learn_) continue;
    const std::optional<uint64_t> hash = indexed_hash(inner()->schema()[field].kind, data);
    if (!hash) continue;
    next.name.hash = *hash;
    if (next.place && next.place->hash != next.name.hash) {
      ++stale_;
      next.place.reset();
    }
    bytes += sizeof(PictureName) + (next.place ? next.place->length : 0);
    ++count;
  }
  if (count == 0) return;
  record.row_indexes.resize(bytes);
  uint8_t* const names = record.row_indexes.data();
  uint8_t* rows = names + count * sizeof(PictureName);
  for (size_t i = 0; i < count; ++i) {
    const Found& picture = found[i];
    uint8_t* const name = names + i * sizeof(PictureName);
    std::memcpy(name, &picture.name, sizeof picture.name);
    RowIndexSlot& slot = record.fields[picture.field].row_index;
    slot.picture = reinterpret_cast<uintptr_t>(name);
    // The store is told through a const source, as all that reads it; it guards itself.
    if (learn_) slot.store = const_cast<IndexedSource*>(this);
    if (!picture.place) continue;
    const std::span<uint8_t> known(rows, picture.place->length);
    rows += known.size();
    if (file_->read(picture.name.slot, *picture.place, known)) {
      slot.known = known;
      ++used_;
    } else {
      ++stale_;
    }
  }
}

void IndexedSource::learned(uint64_t picture, std::span<const uint8_t> row_index) {
  PictureName name;
  std::memcpy(&name, reinterpret_cast<const void*>(static_cast<uintptr_t>(picture)), sizeof name);
  if (file_->add(name.slot, name.hash, row_index)) ++learned_;
}

namespace {

// Null, with a note, where there is none and none can be made.
std::unique_ptr<RowIndexFile> file_in_cache(const CacheDirectory& cache, const std::string& path,
                                            const RowIndexKey& key, bool learn, std::string& note) {
  if (path.empty()) {
    note = "there is no cache folder";
    return nullptr;
  }
  if (!learn) {
    Result<std::unique_ptr<RowIndexFile>> there = RowIndexFile::open(path, key, false);
    if (there) return std::move(*there);
    note = "none was made";
    return nullptr;
  }
  cache.make();
  std::unique_ptr<RowIndexFile> file = RowIndexFile::extend(path, key);
  if (!file) note = "the cache folder " + cache.path() + " cannot be written";
  return file;
}

}  // namespace

WithRowIndex with_row_index(const SourcePtr& source, RowIndexUse use, const std::string& file) {
  WithRowIndex out;
  out.source = source;
  if (use == RowIndexUse::kOff) return out;
  out.source = with_viewed(source, [&](const SourcePtr& viewed) -> SourcePtr {
    const RowIndexKey key = IndexedFields(*viewed).key();
    if (key.slots() == 0) {
      out.note = "the records have no encoded pictures or videos";
      return viewed;
    }
    const bool learn = use == RowIndexUse::kAuto;
    std::unique_ptr<RowIndexFile> opened;
    if (!file.empty()) {
      Result<std::unique_ptr<RowIndexFile>> named = RowIndexFile::open(file, key, false);
      if (!named) throw Exception(std::move(named.error()));
      out.file = file;
      opened = std::move(*named);
    } else {
      const CacheDirectory cache = CacheDirectory::of_user();
      out.file = cache.path_of(row_index_cache_name(key.fingerprint));
      opened = file_in_cache(cache, out.file, key, learn, out.note);
    }
    if (!opened) return viewed;
    out.index = std::make_shared<IndexedSource>(viewed, std::move(opened), learn && file.empty());
    return out.index;
  });
  return out;
}

}  // namespace headrace
