// SPDX-License-Identifier: Apache-2.0
// Columns of variable-length values in Arrow's layout.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "headrace/sources/columns/column_cell.h"

namespace headrace {

struct Blob {
  const uint8_t* data = nullptr;  // null if in a file
  int file = -1;                  // index in the column's files; -1: in memory
  uint64_t position = 0;
  size_t bytes = 0;

  // Reads the first out.size() bytes.
  Result<void> read(const BlobColumn& column, std::span<uint8_t> out) const;
};
// The location of a record's blob; empty if the record has none.
std::optional<Blob> blob_of(const Cell& cell, int64_t record);

// make_cell() for such columns.
Field make_blobs(BlobColumn& blobs, const Column& column, Cell& cell);
// add_cell() for such columns: adds the length and first bytes of some values.
void add_blobs(const Cell& cell, int64_t count, Fingerprint& print);

}  // namespace headrace
