// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/row_index/indexed_source.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "headrace/fields/kind.h"
#include "headrace/fields/media.h"
#include "headrace/kernels/content_hash.h"
#include "headrace/sources/readable_text.h"
#include "headrace/sources/subset.h"
#include "headrace/storage/cache_directory.h"
#include "headrace/storage/file.h"

namespace headrace {
namespace {

// Identifies a picture while it is decoded, by the address of this object in the record's own
// memory.
struct PictureName {
  const IndexedOrigin* part;
  int64_t slot;
  uint64_t hash;
};

// The index entry found for one picture of a record.
struct Found {
  size_t field = 0;
  PictureName name{};
  std::optional<RowIndexFile::Place> place;
};

// For a file that is not read: its identity, which differs for one that replaces or changes it.
std::optional<uint64_t> identity_hash(const File& file) {
  const Result<FileIdentity> identity = file.identity();
  if (!identity) return std::nullopt;
  const uint64_t numbers[] = {identity->device, identity->inode, identity->size,
                              static_cast<uint64_t>(identity->modified_ns)};
  return content_hash({reinterpret_cast<const uint8_t*>(numbers), sizeof numbers});
}

// For a video in memory: hashes its size and both ends, where containers have their tables. Hashing
// all bytes would cost as much as the index saves.
uint64_t ends_hash(std::span<const uint8_t> bytes) {
  constexpr size_t kEnd = size_t{64} << 10;
  const size_t end = std::min(bytes.size(), kEnd);
  return content_hash(bytes.first(end), content_hash(bytes.last(end), bytes.size()));
}

}  // namespace

std::optional<uint64_t> indexed_hash(FieldKind kind, const FieldData& data) {
  if (data.bytes.empty()) return data.file ? identity_hash(*data.file) : std::nullopt;
  return record_of(kind).by_range ? ends_hash(data.bytes) : content_hash(data.bytes);
}

IndexedFields::IndexedFields(const Source& source) {
  for (size_t i = 0; i < source.schema().size(); ++i) {
    const Field& field = source.schema()[i];
    if (source.shares_files(i)) continue;
    const MediaRecord* const media = field.encoded ? media_of(field.kind) : nullptr;
    if (media && (is_picture(field.kind) || media->index)) fields_.push_back(i);
  }
  key_ = {source.fingerprint(), source.size(), static_cast<int64_t>(fields_.size())};
}

int64_t IndexedFields::slot_of_field(int64_t record, size_t field) const {
  const auto found = std::ranges::find(fields_, field);
  return found == fields_.end() ? -1 : slot(record, static_cast<size_t>(found - fields_.begin()));
}

IndexedSource::IndexedSource(SourcePtr source, std::vector<IndexedOrigin> origins, bool learn)
    : SourceAround(std::move(source)),
      fields_(IndexedFields(*inner()).fields()),
      parts_(std::move(origins)),
      learn_(learn) {
  for (const IndexedOrigin& part : parts_) part_of_source_[part.source] = &part;
}

const IndexedOrigin* IndexedSource::part_of(int64_t record, size_t field, int64_t& slot) const {
  const bool is_whole = parts_.size() == 1 && parts_[0].source == inner().get();
  const Origin from =
      is_whole ? Origin{inner().get(), record, field} : inner()->origin(record, field);
  const auto found = part_of_source_.find(from.source);
  if (found == part_of_source_.end()) return nullptr;
  slot = found->second->pictures.slot_of_field(from.index, from.field);
  return slot < 0 ? nullptr : found->second;
}

void IndexedSource::keep() {
  for (const IndexedOrigin& part : parts_) part.file->flush();
}

void IndexedSource::read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
                         std::span<RecordData> out) const {
  for (RecordData& record : out) {  // clears facts about earlier records
    for (FieldData& data : record.fields) data.row_index = {};
  }
  inner()->read(indices, wanted, out);
  for (RecordData& record : out) {
    if (record.result) attach(wanted, record);
  }
}

// Uses one block of the record's memory: the identifiers, then the row indexes.
void IndexedSource::attach(const std::vector<bool>& wanted, RecordData& record) const {
  constexpr size_t kMax = 8;  // maximum pictures per record; others get no index
  std::array<Found, kMax> found;
  size_t count = 0, bytes = 0;
  for (size_t i = 0; i < std::min(fields_.size(), kMax); ++i) {
    const size_t field = fields_[i];
    FieldData& data = record.fields[field];
    if (!data.row_index.known.empty() || data.track) continue;  // provided by the source
    if (!wanted[field] || (data.bytes.empty() && !data.file)) continue;
    int64_t slot = -1;
    const IndexedOrigin* const part = part_of(record.index, field, slot);
    if (!part) continue;
    Found& next = found[count];
    next = {field, {part, slot, 0}, part->file->place_of(slot)};
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
    slot.image = reinterpret_cast<uintptr_t>(name);
    // Decoders update the store through a const source; the store has its own lock.
    if (learn_) slot.store = const_cast<IndexedSource*>(this);
    if (!picture.place) continue;
    const std::span<uint8_t> known(rows, picture.place->length);
    rows += known.size();
    if (picture.name.part->file->read(picture.name.slot, *picture.place, known)) {
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
  // Another decode of the same picture may have found a longer index.
  RowIndexFile& file = *name.part->file;
  if (file.has_longer(name.slot, name.hash, row_index.size())) return;
  if (file.add(name.slot, name.hash, row_index)) ++learned_;
}

namespace {

// Null, with a note, if the file does not exist and cannot be created.
std::unique_ptr<RowIndexFile> file_in_cache(const CacheDirectory& cache, const std::string& path,
                                            const RowIndexKey& key, bool learn, std::string& note) {
  if (path.empty()) {
    note = "there is no cache folder";
    return nullptr;
  }
  if (!learn) {
    Result<std::unique_ptr<RowIndexFile>> there = RowIndexFile::open(path, key, false);
    if (there) return std::move(*there);
    note = "none exists: create one with `headrace index` or hr.index()";
    return nullptr;
  }
  cache.make();
  std::unique_ptr<RowIndexFile> file = RowIndexFile::extend(path, key);
  if (!file) note = "the cache folder " + cache.path() + " cannot be written";
  return file;
}

// Opens the user's file, made for the whole source or for its origin.
IndexedOrigin named_file(const Source& whole, const std::string& path) {
  std::vector<const Source*> candidates = {&whole};
  add_origins(whole, candidates);
  std::optional<Error> first;
  for (const Source* source : candidates) {
    IndexedFields pictures(*source);
    if (pictures.key().slots() == 0) continue;
    Result<std::unique_ptr<RowIndexFile>> file = RowIndexFile::open(path, pictures.key(), false);
    if (file) return {source, std::move(pictures), std::move(*file)};
    if (!first) first = std::move(file.error());
  }
  throw Exception(std::move(*first));
}

// A note on files that could have an index but have none.
std::string missing_note(const std::vector<std::string>& missing, size_t origins,
                         const std::string& why) {
  if (origins == 1 || missing.empty()) return why;
  std::string out = count_text(static_cast<int64_t>(missing.size()), "source") + " of " +
                    std::to_string(origins) + " without: " + missing[0];
  if (missing.size() > 1) out += " and " + std::to_string(missing.size() - 1) + " more";
  return out + "; " + why;
}

class Opening {
 public:
  Opening(bool learn, WithRowIndex& out) : learn_(learn), out_(out) {}

  SourcePtr around(const SourcePtr& viewed, const std::string& named) {
    const std::vector<const Source*> origins = viewed->origins();
    for (const Source* origin : origins) out_.pictures += IndexedFields(*origin).key().slots();
    if (out_.pictures == 0) {
      out_.note = "the records have no encoded images or videos";
      return viewed;
    }
    if (!named.empty()) {
      parts_.push_back(named_file(*viewed, named));
      out_.file = named;
    } else {
      for (const Source* origin : origins) open(*origin);
      out_.file = parts_.size() == 1 ? parts_[0].file->path() : cache_.path();
      out_.note = missing_note(missing_, missing_.size() + parts_.size(), why_);
    }
    if (parts_.empty()) return viewed;
    const bool learn = learn_ && named.empty();
    out_.index = std::make_shared<IndexedSource>(viewed, std::move(parts_), learn);
    return out_.index;
  }

 private:
  static constexpr size_t kMaxFiles = 64;  // index files open at the same time

  void open(const Source& origin) {
    IndexedFields pictures(origin);
    if (pictures.key().slots() == 0) return;
    const std::string path = cache_.path_of(row_index_cache_name(pictures.key().fingerprint));
    std::unique_ptr<RowIndexFile> file;
    if (parts_.size() == kMaxFiles) {
      why_ = "no more than " + std::to_string(kMaxFiles) + " are opened";
    } else {
      file = file_in_cache(cache_, path, pictures.key(), learn_, why_);
    }
    if (file) {
      parts_.push_back({&origin, std::move(pictures), std::move(file)});
    } else {
      missing_.push_back(origin.description());
    }
  }

  const bool learn_;
  WithRowIndex& out_;
  const CacheDirectory cache_ = CacheDirectory::of_user();
  std::vector<IndexedOrigin> parts_;
  std::vector<std::string> missing_;
  std::string why_;
};

}  // namespace

WithRowIndex with_row_index(const SourcePtr& source, RowIndexUse use, const std::string& file) {
  WithRowIndex out;
  out.source = source;
  if (use == RowIndexUse::kOff) return out;
  Opening opening(use == RowIndexUse::kAuto, out);
  out.source =
      with_viewed(source, [&](const SourcePtr& viewed) { return opening.around(viewed, file); });
  return out;
}

}  // namespace headrace
