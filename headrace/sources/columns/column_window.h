// SPDX-License-Identifier: Apache-2.0
// A column of windows: the rows of an array around each record.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/sources/columns/column_cell.h"

namespace headrace {

// make_cell() of such a column.
Field make_window(WindowColumn& rows, const Column& column, Cell& cell);
// Cell::Form::kWindow: fills `out`, of bytes * offsets.size().
void read_window(const Cell& cell, int64_t record, std::span<uint8_t> out);

}  // namespace headrace
