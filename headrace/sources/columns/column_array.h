// SPDX-License-Identifier: Apache-2.0
// A column of an array, in memory or in files.
#pragma once

#include <cstdint>

#include "headrace/sources/columns/column_cell.h"

namespace headrace {

// make_cell() of such columns.
Field make_array(ArrayColumn& array, const Column& column, Cell& cell);
Field make_file_array(FileArray& array, const Column& column, Cell& cell);
// add_cell() of their values, which may be many: arrays are distinguished by the bytes at sixteen
// positions.
void add_array(const Cell& cell, int64_t count, Fingerprint& print);

}  // namespace headrace
