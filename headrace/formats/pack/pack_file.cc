// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/pack/pack_file.h"

#include <algorithm>
#include <new>
#include <optional>

#include "headrace/base/byte_stream.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/crc32c.h"
#include "headrace/storage/read_at_once.h"

namespace headrace {
namespace {

const ErrorCode kCutOff{
    "HR0442", ErrorKind::kData, "truncated pack",
    "The end of the pack is missing: copying was interrupted, or packing did not finish. Copy it "
    "again, or rerun the same pack command, which resumes where it stopped. The records of "
    "complete pages can be read with recover=True (--recover), which reports what is missing."};

const ErrorCode kDamagedIndex{
    "HR0443", ErrorKind::kData, "damaged pack index",
    "The index at the end of the pack contradicts itself or the file, so records cannot be "
    "located with it. Copy the pack again. With recover=True (--recover) the records are located "
    "by their pages, without the index."};

const ErrorCode kDamagedRecord{
    "HR0444", ErrorKind::kData, "damaged record in a pack",
    "The bytes of this record differ from those that were packed: their checksum does not match. "
    "A disk, a copy or a cable changed them. Other records are not affected. `headrace scan` "
    "lists all damaged records; copy the pack again, or pack the dataset again."};

const ErrorCode kTooLarge{
    "HR0453", ErrorKind::kResource, "record too large",
    "A record of the pack exceeds one record's share of memory_limit, or the machine's memory. "
    "Raise memory_limit, or skip the record."};

constexpr std::string_view kRecoverHint =
    "copy it again, or open the rest with recover=True (--recover)";

}  // namespace

Result<PackHeader> read_pack_header(const File& file) {
  std::vector<uint8_t> bytes(std::min<uint64_t>(kPackHeaderFixed, file.size()));
  if (Result<void> read = file.read(0, bytes); !read) return std::move(read.error());
  Result<uint32_t> size = header_bytes(bytes);
  if (size) {
    bytes.resize(std::min<uint64_t>(*size, file.size()));
    if (Result<void> read = file.read(0, bytes); !read) return std::move(read.error());
  }
  Result<PackHeader> header = header_from_bytes(bytes);
  if (!header) header.error().where.file = file.path();
  return header;
}

Result<PackFile> PackFile::open(const std::string& path, bool recover) {
  Result<File> file = File::open(path);
  if (!file) return std::move(file.error());
  PackFile pack(std::move(*file));
  // For most packs that is all of the header and the index.
  const uint64_t size = pack.file_.size();
  std::vector<ReadAtOnce::Range> ranges{{0, size}};
  if (size > AsyncStorage::kLastBytes) {
    ranges = {{0, AsyncStorage::kFirstBytes},
              {size - AsyncStorage::kLastBytes, AsyncStorage::kLastBytes}};
  }
  const ReadAtOnce ends(pack.file_, std::move(ranges));
  Result<PackHeader> header = read_pack_header(pack.file_);
  if (!header) return std::move(header.error());
  pack.header_ = std::move(*header);
  Result<void> loaded = pack.load_index();
  if (!loaded && recover && loaded.error().code->kind == ErrorKind::kData) {
    loaded = pack.load_pages(loaded.error().what);
  }
  if (!loaded) return std::move(loaded.error());
  return pack;
}

Error PackFile::damaged_index(std::string what) const {
  return {.code = &kDamagedIndex,
          .what = std::move(what),
          .where = Where{.file = path()},
          .hint = std::string(kRecoverHint)};
}

Result<PackTail> PackFile::read_tail() const {
  std::array<uint8_t, kPackTailBytes> bytes{};
  PackTail tail;
  bool found = false;
  if (file_.size() >= header_.header_bytes + kPackTailBytes) {
    Result<void> read = file_.read(file_.size() - kPackTailBytes, bytes);
    if (!read) return std::move(read.error());
    found = tail_from_bytes(bytes, tail);
  }
  if (found && tail.file_bytes == file_.size()) return tail;
  return Error{.code = &kCutOff,
               .what = "the file ends after " + with_commas(static_cast<int64_t>(file_.size())) +
                       " bytes without a pack's end",
               .where = Where{.file = path(), .offset = static_cast<int64_t>(file_.size())},
               .hint = std::string(kRecoverHint)};
}

Result<void> PackFile::load_index() {
  const Result<PackTail> tail = read_tail();
  if (!tail) return Error(tail.error());
  if (tail->records != header_.records) {
    return damaged_index("it has " + std::to_string(tail->records) +
                         " records, but the header "
                         "declares " +
                         std::to_string(header_.records));
  }
  records_ = tail->records;
  content_ = tail->content;
  Result<void> loaded = load_directory(*tail);
  std::optional<ReadAtOnce> all;
  if (const uint64_t bytes = file_.size() - pages_end_;
      loaded && bytes > AsyncStorage::kLastBytes) {
    all.emplace(file_, std::vector<ReadAtOnce::Range>{{pages_end_, bytes}});
  }
  if (loaded) loaded = load_page_list(*tail);
  if (loaded) loaded = load_table();
  return loaded;
}

Result<void> PackFile::load_directory(const PackTail& tail) {
  const uint64_t end = file_.size() - kPackTailBytes;
  const uint64_t bytes = uint64_t{tail.sections} * kSectionEntryBytes;
  if (tail.directory_offset > end || bytes != end - tail.directory_offset) {
    return damaged_index("its directory does not fit into the file");
  }
  std::vector<uint8_t> raw(bytes);
  if (Result<void> read = file_.read(tail.directory_offset, raw); !read) return read;
  if (crc32c(raw) != tail.directory_checksum) {
    return damaged_index("the checksum of its directory differs");
  }
  sections_ = sections_from_bytes(raw);
  pages_end_ = tail.directory_offset;
  for (const Section& section : sections_) {
    if (section.offset < header_.header_bytes || section.offset > tail.directory_offset ||
        section.bytes > tail.directory_offset - section.offset) {
      return damaged_index("a section of it lies outside the file");
    }
    const auto tag = static_cast<uint32_t>(section.tag);
    if (tag < 1 || tag > static_cast<uint32_t>(SectionTag::kReasons)) {
      if (section.flags & kMustUnderstand) {
        return damaged_index("it needs section " + std::to_string(tag) +
                             ", which this version cannot read");
      }
    }
    pages_end_ = std::min(pages_end_, section.offset);
  }
  return {};
}

const Section* PackFile::find_section(SectionTag tag, uint32_t field) const {
  for (const Section& section : sections_) {
    if (section.tag == tag && section.field == field) return &section;
  }
  return nullptr;
}

Result<void> PackFile::section(SectionTag tag, uint32_t field, uint64_t bytes, Buffer& out) const {
  const Section* found = find_section(tag, field);
  const std::string name = "section " + std::to_string(static_cast<uint32_t>(tag)) + " of field " +
                           std::to_string(field);
  if (!found) return damaged_index(name + " is missing");
  if (bytes != SIZE_MAX && found->bytes != bytes) {
    return damaged_index(name + " has " + std::to_string(found->bytes) + " bytes, not " +
                         std::to_string(bytes));
  }
  out.resize(found->bytes);
  if (Result<void> read = file_.read(found->offset, {out.data(), out.size()}); !read) return read;
  if (crc32c(out.bytes()) != found->checksum) {
    Error error = damaged_index("the checksum of " + name + " differs");
    error.where.offset = static_cast<int64_t>(found->offset);
    return error;
  }
  return {};
}

Result<void> PackFile::load_page_list(const PackTail& tail) {
  // The section's size is checked first, because products of numbers from the file may overflow.
  const Section* found = find_section(SectionTag::kPages, 0);
  if (!found || found->bytes % kPageEntryBytes != 0 ||
      found->bytes / kPageEntryBytes != tail.pages) {
    return damaged_index("its list of pages differs from its declared length");
  }
  Buffer raw;
  if (Result<void> read = section(SectionTag::kPages, 0, found->bytes, raw); !read) return read;
  pages_.resize(tail.pages);
  ByteReader in(raw.bytes());
  for (PackPage& page : pages_) {
    page.offset = in.number<uint64_t>();
    page.data_offset = in.number<uint64_t>();
    page.first_record = in.number<uint64_t>();
  }
  for (size_t i = 0; i < pages_.size(); ++i) {
    const PackPage& page = pages_[i];
    const uint64_t end = i + 1 < pages_.size() ? pages_[i + 1].offset : pages_end_;
    const uint64_t next = i + 1 < pages_.size() ? pages_[i + 1].first_record : records_;
    const bool first = i > 0 || (page.offset == header_.header_bytes && page.first_record == 0);
    if (!first || page.offset >= end || end > pages_end_ || page.offset % kPageAlignment != 0 ||
        page.data_offset < page.offset || page.data_offset > end || page.first_record >= next) {
      return damaged_index("page " + std::to_string(i) + " does not follow the previous page");
    }
  }
  if (pages_.empty() != (records_ == 0))
    return damaged_index("its pages do not contain its records");
  return {};
}

Result<void> PackFile::load_table() {
  const Section* letters = find_section(SectionTag::kKeys, 0);
  const Section* sizes = find_section(SectionTag::kKeyBytes, 0);
  if (!letters || !sizes || sizes->bytes / sizeof(uint32_t) != records_ ||
      sizes->bytes % sizeof(uint32_t) != 0) {
    return damaged_index("its number of keys differs from its number of records");
  }
  Buffer raw, raw_sizes;
  Result<void> read = section(SectionTag::kKeys, 0, letters->bytes, raw);
  if (read) read = section(SectionTag::kKeyBytes, 0, sizes->bytes, raw_sizes);
  if (!read) return read;
  std::optional<NameList> keys = keys_from_bytes(raw_sizes.bytes(), raw.bytes());
  if (!keys) return damaged_index("the sizes of its keys do not add up");
  keys_ = std::move(*keys);
  // From here on, records_ is known to be plausible for the file's size.
  fields_.resize(header_.schema.size());
  std::vector<std::vector<uint32_t>> stored(fields_.size());
  for (uint32_t i = 0; i < fields_.size(); ++i) {
    LoadedField& field = fields_[i];
    field.width = column_bytes(header_.schema[i]);
    if (field.width > 0) {
      read = section(SectionTag::kColumn, i, records_ * field.width, raw);
      if (!read) return read;
      field.values.assign(raw.bytes().begin(), raw.bytes().end());
      continue;
    }
    field.blobs.resize(records_);
    read = section(SectionTag::kStoredSum, i, records_ * sizeof(uint32_t), raw);
    if (!read) return read;
    ByteReader sums(raw.bytes());
    for (BlobPlace& place : field.blobs) place.sum = sums.number<uint32_t>();
    read = section(SectionTag::kStoredBytes, i, records_ * sizeof(uint32_t), raw);
    if (!read) return read;
    append_numbers(raw.bytes(), stored[i]);
  }
  if (!place_blobs(stored, pages_end_)) return damaged_index("a record lies outside its page");
  return {};
}

// Blobs are contiguous: by record, and within it by field.
bool PackFile::place_blobs(const std::vector<std::vector<uint32_t>>& sizes, uint64_t end) {
  for (size_t page = 0; page < pages_.size(); ++page) {
    const bool last = page + 1 == pages_.size();
    const uint64_t page_end = last ? end : pages_[page + 1].offset;
    const uint64_t next = last ? records_ : pages_[page + 1].first_record;
    uint64_t at = pages_[page].data_offset;
    for (uint64_t record = pages_[page].first_record; record < next; ++record) {
      for (size_t i = 0; i < fields_.size(); ++i) {
        if (fields_[i].width > 0) continue;
        fields_[i].blobs[record].offset = at;
        fields_[i].blobs[record].bytes = sizes[i][record];
        at += aligned(sizes[i][record], kBlobAlignment);
      }
      if (at > page_end) return false;
    }
  }
  return true;
}

Result<void> PackFile::load_pages(std::string why) {
  Result<ScannedPages> scanned = scan_pages(file_, header_, false);
  if (!scanned) return std::move(scanned.error());
  pages_ = std::move(scanned->pages);
  pages_end_ = scanned->end;
  sections_.clear();
  PackTable& table = scanned->table;
  records_ = table.records();
  content_ = 0;
  for (uint64_t i = 0; i < records_; ++i) {
    content_ += record_mark(table, i, header_.first_record + i);
  }
  keys_ = std::move(table.keys);
  fields_.assign(header_.schema.size(), {});
  std::vector<std::vector<uint32_t>> stored(fields_.size());
  for (size_t i = 0; i < fields_.size(); ++i) {
    TableField& from = table.fields[i];
    fields_[i].width = from.width;
    fields_[i].values = std::move(from.values);
    stored[i] = std::move(from.stored_bytes);
    if (from.width > 0) continue;
    fields_[i].blobs.resize(records_);
    for (uint64_t k = 0; k < records_; ++k) fields_[i].blobs[k].sum = from.stored_sum[k];
  }
  place_blobs(stored, pages_end_);
  if (records_ == header_.records) {
    missing_ = "no record is missing; only the index is unusable (" + why + ")";
  } else {
    missing_ = "records " + with_commas(static_cast<int64_t>(header_.first_record + records_)) +
               " to " +
               with_commas(static_cast<int64_t>(header_.first_record + header_.records - 1)) +
               " are missing (" + scanned->stopped + "; " + why + ")";
  }
  return {};
}

std::span<const uint8_t> PackFile::column(size_t field, int64_t record) const {
  const LoadedField& from = fields_[field];
  return std::span(from.values).subspan(static_cast<size_t>(record) * from.width, from.width);
}

Error PackFile::in_record(Error error, size_t field, int64_t record) const {
  error.where.file = path();
  error.where.member = keys_[record];
  error.where.record = static_cast<int64_t>(header_.first_record) + record;
  error.where.offset = static_cast<int64_t>(blob(field, record).offset);
  return error;
}

Result<void> PackFile::read(size_t field, int64_t record, bool verify, Buffer& out) const {
  const BlobPlace& place = blob(field, record);
  const auto version = file_.piece(place.offset, place.bytes).known;
  const bool is_here =
      StagedReads::take(path(), place.offset, place.bytes, version ? &*version : nullptr, out);
  try {
    if (!is_here) out.resize(place.bytes);
  } catch (const std::bad_alloc&) {
    return in_record({.code = &kTooLarge,
                      .what = "the record has " + with_commas(place.bytes) +
                              " bytes, more than the remaining memory",
                      .hint = "skip the record"},
                     field, record);
  }
  if (place.bytes == 0) return {};
  Result<void> read;
  if (!is_here) read = file_.read(place.offset, {out.data(), out.size()});
  if (!read) {
    Error error = std::move(read.error());
    const int64_t offset = error.where.offset;
    error = in_record(std::move(error), field, record);
    if (offset >= 0) error.where.offset = offset;
    return error;
  }
  if (!verify || crc32c(out.bytes()) == place.sum) return {};
  return in_record({.code = &kDamagedRecord,
                    .what = "the checksum of field '" + header_.schema[field].name + "' differs",
                    .hint = "copy the pack again; `headrace scan` lists all damaged records"},
                   field, record);
}

Result<PackTable> PackFile::table() const {
  if (sections_.empty()) {
    Result<ScannedPages> scanned = scan_pages(file_, header_, false);
    if (!scanned) return std::move(scanned.error());
    return std::move(scanned->table);
  }
  PackTable table(header_.schema);
  Buffer raw;
  const auto load = [&](SectionTag tag, uint32_t field, auto& out) -> Result<void> {
    using Number = typename std::remove_reference_t<decltype(out)>::value_type;
    Result<void> read = section(tag, field, records_ * sizeof(Number), raw);
    if (!read) return read;
    append_numbers(raw.bytes(), out);
    return {};
  };
  for (uint32_t i = 0; i < fields_.size(); ++i) {
    TableField& field = table.fields[i];
    if (field.width > 0) {
      field.values = fields_[i].values;
      continue;
    }
    Result<void> read = load(SectionTag::kStoredBytes, i, field.stored_bytes);
    if (read) read = load(SectionTag::kStoredSum, i, field.stored_sum);
    if (read) read = load(SectionTag::kOriginalBytes, i, field.original_bytes);
    if (read) read = load(SectionTag::kOriginalSum, i, field.original_sum);
    if (read) read = load(SectionTag::kForm, i, field.form);
    if (read) read = load(SectionTag::kReason, i, field.reason);
    if (!read) return std::move(read.error());
  }
  for (int64_t i = 0; i < keys_.size(); ++i) table.keys.add(keys_[i]);
  Result<void> read = section(SectionTag::kReasons, 0, SIZE_MAX, raw);
  if (!read) return std::move(read.error());
  std::optional<std::vector<std::string>> reasons = reasons_from_bytes(raw.bytes());
  if (!reasons) return damaged_index("its reasons cannot be read");
  table.reasons = std::move(*reasons);
  for (const TableField& field : table.fields) {
    for (uint8_t reason : field.reason) {
      if (reason > table.reasons.size()) return damaged_index("a reason has no text");
    }
  }
  return table;
}

}  // namespace headrace
