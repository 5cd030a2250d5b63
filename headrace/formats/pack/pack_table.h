// SPDX-License-Identifier: Apache-2.0
// The data of a pack's records except their blobs: columns, sizes, checksums, keys. Each page
// contains a table, and the index contains one for the whole file, in sections.
//
// Tables are plain data, and parsed as hostile input.
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

// The properties of a blob, without its bytes.
struct BlobFacts {
  uint32_t stored_bytes = 0, stored_sum = 0;
  uint32_t original_bytes = 0, original_sum = 0;
  uint8_t form = 0;    // a PackForm, and kUnusableBit
  uint8_t reason = 0;  // why it is stored unchanged: number of a reason in the table; 0: none
};

// A field's part of a table: `values` for columns, the rest for blobs.
struct TableField {
  size_t width = 0;  // bytes per column value; 0: blobs
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
  // Total bytes of one record's blobs, with their alignment.
  uint64_t blob_bytes(size_t record) const;
  // The number of a reason; adds it if it is new. At most 255 reasons; further ones get the last
  // number.
  uint8_t reason_number(std::string_view reason);
  // Appends the records of a table of the same schema.
  void append(const PackTable& other);
  void clear();

  std::vector<TableField> fields;
  NameList keys;
  std::vector<std::string> reasons;  // reason n is reasons[n - 1]
};

// Serializes a page's table, and the inverse: empty if the bytes are not a table of `records`
// records.
std::vector<uint8_t> bytes_from_table(const PackTable& table);
std::optional<PackTable> table_from_bytes(std::span<const uint8_t> bytes, const Schema& schema,
                                          uint32_t records);

// Calls `put` with each part of a table that is a section of the index, in file order.
void for_each_section(
    const PackTable& table,
    const std::function<void(SectionTag, uint32_t, std::span<const uint8_t>)>& put);
// Serializes the reasons for their section, and the inverse.
std::vector<uint8_t> bytes_from_reasons(const std::vector<std::string>& reasons);
std::optional<std::vector<std::string>> reasons_from_bytes(std::span<const uint8_t> bytes);
// Keys from their sizes and concatenated text; empty if these are inconsistent.
std::optional<NameList> keys_from_bytes(std::span<const uint8_t> sizes,
                                        std::span<const uint8_t> letters);

// A 64-bit hash of a record's position in the dataset, its key, its columns and the original bytes
// of its blobs. The wrapping sum over all records is the same however a dataset is packed and
// sharded.
uint64_t record_mark(const PackTable& table, size_t record, uint64_t place);

}  // namespace headrace
