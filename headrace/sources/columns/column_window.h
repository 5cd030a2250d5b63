// SPDX-License-Identifier: Apache-2.0
// Columns of windows: the rows of an array around each record.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/sources/columns/column_cell.h"

namespace headrace {

// make_cell() for such columns.
Field make_window(WindowColumn& rows, const Column& column, Cell& cell);
// For Cell::Form::kWindow: fills `out`. REQUIRES: out.size() == bytes * offsets.size().
void read_window(const Cell& cell, int64_t record, std::span<uint8_t> out);

}  // namespace headrace
