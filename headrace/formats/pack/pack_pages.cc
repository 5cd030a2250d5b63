// SPDX-License-Identifier: Apache-2.0
// Reads pages one by one, without the index: to recover a truncated pack, and to find where
// interrupted packing continues.
#include <algorithm>

#include "headrace/formats/pack/pack_file.h"
#include "headrace/storage/crc32c.h"

namespace headrace {
namespace {

// Blobs are verified in pieces of this size.
constexpr size_t kPiece = size_t{1} << 20;

Result<bool> blob_is_valid(const File& file, uint64_t offset, const BlobFacts& facts,
                           Buffer& scratch) {
  uint32_t sum = 0;
  for (uint64_t done = 0; done < facts.stored_bytes;) {
    scratch.resize(std::min<uint64_t>(kPiece, facts.stored_bytes - done));
    Result<void> read = file.read(offset + done, {scratch.data(), scratch.size()});
    if (!read) return std::move(read.error());
    sum = crc32c(scratch.bytes(), sum);
    done += scratch.size();
  }
  return sum == facts.stored_sum;
}

// One page of a file, and the error if it is not complete.
struct OnePage {
  PageHeader header;
  PackTable table;
  std::string wrong;
};

Result<OnePage> read_page(const File& file, const PackHeader& header, uint64_t offset,
                          uint64_t number, uint64_t first_record) {
  OnePage page;
  const std::string name = "page " + std::to_string(number);
  const uint64_t left = file.size() - offset;
  if (left < kPageHeaderBytes) {
    page.wrong = left == 0 ? "there is no " + name : name + " is truncated";
    return page;
  }
  std::array<uint8_t, kPageHeaderBytes> bytes;
  if (Result<void> read = file.read(offset, bytes); !read) return std::move(read.error());
  const PageHeader found = page_from_bytes(bytes);
  if (found.bytes == 0 || found.number != number || found.first_record != first_record ||
      found.records > header.records - first_record) {
    page.wrong = name + " has no valid header";
    return page;
  }
  if (found.bytes > left) {
    page.wrong = name + " is truncated";
    return page;
  }
  Buffer table_bytes(found.table_bytes);
  Result<void> read =
      file.read(offset + kPageHeaderBytes, {table_bytes.data(), table_bytes.size()});
  if (!read) return std::move(read.error());
  std::optional<PackTable> table;
  if (is_intact(bytes, table_bytes.bytes())) {
    table = table_from_bytes(table_bytes.bytes(), header.schema, found.records);
  }
  uint64_t blobs = found.data_offset;
  for (uint32_t i = 0; table && i < found.records; ++i) blobs += table->blob_bytes(i);
  if (!table || blobs > found.bytes) {
    page.wrong = name + " has a damaged table";
    return page;
  }
  page.header = found;
  page.table = std::move(*table);
  return page;
}

Result<bool> blobs_are_valid(const File& file, uint64_t data_offset, const PackTable& table,
                             Buffer& scratch) {
  uint64_t at = data_offset;
  for (size_t record = 0; record < table.records(); ++record) {
    for (const TableField& field : table.fields) {
      if (field.width > 0) continue;
      const BlobFacts facts = field.blob(record);
      Result<bool> sound = blob_is_valid(file, at, facts, scratch);
      if (!sound || !*sound) return sound;
      at += aligned(facts.stored_bytes, kBlobAlignment);
    }
  }
  return true;
}

}  // namespace

Result<ScannedPages> scan_pages(const File& file, const PackHeader& header, bool check_blobs,
                                const std::function<void(uint64_t)>& tick) {
  ScannedPages out{
      .pages = {}, .table = PackTable(header.schema), .end = header.header_bytes, .stopped = {}};
  Buffer scratch;
  uint64_t records = 0;
  while (records < header.records) {
    if (file.size() < out.end) {
      out.stopped = "it has no page 0";
      return out;
    }
    Result<OnePage> page = read_page(file, header, out.end, out.pages.size(), records);
    if (!page) return std::move(page.error());
    const uint64_t data_offset = out.end + page->header.data_offset;
    if (page->wrong.empty() && check_blobs) {
      Result<bool> sound = blobs_are_valid(file, data_offset, page->table, scratch);
      if (!sound) return std::move(sound.error());
      if (!*sound) page->wrong = "page " + std::to_string(out.pages.size()) + " is damaged";
    }
    if (!page->wrong.empty()) {
      out.stopped = std::move(page->wrong);
      return out;
    }
    out.pages.push_back({out.end, data_offset, records});
    out.table.append(page->table);
    records += page->header.records;
    out.end += page->header.bytes;
    if (tick) tick(records);
  }
  return out;
}

Result<void> PackFile::check_page(size_t number) const {
  const PackPage& page = pages_[number];
  Result<OnePage> found = read_page(file_, header_, page.offset, number, page.first_record);
  if (!found) return std::move(found.error());
  const bool last = number + 1 == pages_.size();
  const uint64_t records = (last ? records_ : pages_[number + 1].first_record) - page.first_record;
  std::string wrong = std::move(found->wrong);
  if (wrong.empty() && (found->header.records != records ||
                        page.offset + found->header.data_offset != page.data_offset)) {
    wrong = "page " + std::to_string(number) + " and the index list different records";
  }
  for (uint64_t i = 0; wrong.empty() && i < records; ++i) {
    if (is_same_record(found->table, i, static_cast<int64_t>(page.first_record + i))) continue;
    wrong = "page " + std::to_string(number) + " and the index differ in record " +
            std::to_string(header_.first_record + page.first_record + i);
  }
  if (wrong.empty()) return {};
  Error error = damaged_index(std::move(wrong));
  error.where.offset = static_cast<int64_t>(page.offset);
  return error;
}

bool PackFile::is_same_record(const PackTable& table, size_t row, int64_t record) const {
  if (table.keys[static_cast<int64_t>(row)] != keys_[record]) return false;
  for (size_t i = 0; i < fields_.size(); ++i) {
    const TableField& field = table.fields[i];
    if (field.width > 0) {
      const auto value = std::span(field.values).subspan(row * field.width, field.width);
      if (!std::ranges::equal(value, column(i, record))) return false;
    } else if (field.stored_bytes[row] != blob(i, record).bytes ||
               field.stored_sum[row] != blob(i, record).sum) {
      return false;
    }
  }
  return true;
}

}  // namespace headrace
