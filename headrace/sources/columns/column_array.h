// SPDX-License-Identifier: Apache-2.0
// Columns of arrays, in memory or in files.
#pragma once

#include <cstdint>

#include "headrace/sources/columns/column_cell.h"

namespace headrace {

// make_cell() for such columns.
Field make_array(ArrayColumn& array, const Column& column, Cell& cell);
Field make_file_array(FileArray& array, const Column& column, Cell& cell);
// add_cell() for such columns. There may be many values, so only the bytes at sixteen positions are
// added.
void add_array(const Cell& cell, int64_t count, Fingerprint& print);

}  // namespace headrace
