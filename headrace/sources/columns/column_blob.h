// SPDX-License-Identifier: Apache-2.0
// A column of variable-length values in Arrow's layout.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "headrace/sources/columns/column_cell.h"

namespace headrace {

struct Blob {
  const uint8_t* data = nullptr;  // in memory, or
  int file = -1;                  // of the column's files
  uint64_t position = 0;
  size_t bytes = 0;

  // The first of its bytes, as many as `out` has.
  Result<void> read(const BlobColumn& column, std::span<uint8_t> out) const;
};
// Where a blob's bytes lie; nothing where the record has none.
std::optional<Blob> blob_of(const Cell& cell, int64_t record);

// make_cell() of such a column.
Field make_blobs(BlobColumn& blobs, const Column& column, Cell& cell);
// add_cell() of its values: of some of them the length and first bytes.
void add_blobs(const Cell& cell, int64_t count, Fingerprint& print);

}  // namespace headrace
