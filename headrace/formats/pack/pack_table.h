// SPDX-License-Identifier: Apache-2.0
// Data of a pack's records apart from their blobs: columns, sizes, checksums, keys. One table
// for each page, inside it, and one for the whole file, in sections of its index.
//
// Tables are plain data, owned by their holders. Parsed as hostile input.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/formats/pack/pack_layout.h"
#include "headrace/sources/name_list.h"

namespace headrace {

// One blob beside its bytes.
struct BlobFacts {
  uint32_t stored_bytes = 0, stored_sum = 0;
  uint32_t original_bytes = 0, original_sum = 0;
  uint8_t form = 0;    // a PackForm, and kUnusableBit
  uint8_t reason = 0;  // why it is stored as it is: a line of the table's reasons; 0 is none
};

// A field's part of a table: `values` of columns, the rest of blobs.
struct TableField {
  size_t width = 0;  // of a column's value; 0: blobs
  std::vector<uint8_t> values;
  std::vector<uint32_t> stored_bytes, stored_sum, original_bytes, original_sum;
  std::vector<uint8_t> form, reason;

  BlobFacts blob(size_t record) const {
    return {stored_bytes[record], stored_sum[record], original_bytes[record],
            original_sum[record], form[record],       reason[record]};
  }
  void add(const BlobFacts& facts);
};

struct PackTable {
  explicit PackTable(const Schema& schema = {});
  size_t records() const { return static_cast<size_t>(keys.size()); }
  // Bytes of the blobs of one record, with their alignment.
  uint64_t blob_bytes(size_t record) const;
  // The number of a reason, which is noted where it is new. At most 255; the rest share the last.
  uint8_t reason_number(std::string_view reason);
  // Appends the records of a table of the same schema.
  void append(const PackTable& other);
  void clear();

  std::vector<TableField> fields;
  NameList keys;
  std::vector<std::string> reasons;  // reason n is reasons[n - 1]
};

// A page's table. Nothing when the bytes are none of `records` records.
std::vector<uint8_t> bytes_from_table(const PackTable& table);
std::optional<PackTable> table_from_bytes(std::span<const uint8_t> bytes, const Schema& schema,
                                          uint32_t records);

// The parts of a table as sections of an index: `put` is called with each, in the file's order.
void for_each_section(
    const PackTable& table,
    const std::function<void(SectionTag, uint32_t, std::span<const uint8_t>)>& put);
// The reasons as a section's bytes, and back.
std::vector<uint8_t> bytes_from_reasons(const std::vector<std::string>& reasons);
std::optional<std::vector<std::string>> reasons_from_bytes(std::span<const uint8_t> bytes);
// Keys from their sizes and letters; nothing when these do not fit together.
std::optional<NameList> keys_from_bytes(std::span<const uint8_t> sizes,
                                        std::span<const uint8_t> letters);

// A 64-bit mark of a record at its place in the dataset: of its key, its columns and the original
// bytes of its blobs. Their sum, wrapped, is the same however a dataset is packed and divided.
uint64_t record_mark(const PackTable& table, size_t record, uint64_t place);

}  // namespace headrace
