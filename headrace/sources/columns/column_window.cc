// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "headrace/sources/columns/column_cell.h"

namespace headrace {

Field make_window(WindowColumn& rows, const Column& column, Cell& cell) {
  const bool rising = std::ranges::is_sorted(rows.ends) && !rows.ends.empty() &&
                      rows.ends.front() >= 0 && rows.ends.back() == rows.values.count;
  if (!rising) bad_column(column.name, "its runs do not end with its records");
  if (rows.offsets.empty()) bad_column(column.name, "a window has at least one row");
  for (const int64_t offset : rows.offsets) {
    if (std::abs(offset) <= WindowColumn::kFarthest) continue;
    bad_column(column.name, "a row of its window is " + std::to_string(offset) + " records away");
  }
  ArrayColumn& array = rows.values;
  cell.form = Cell::Form::kWindow;
  cell.owner = std::move(array.owner);
  cell.data = rows.padding ? nullptr : static_cast<const uint8_t*>(array.data);
  cell.bytes =
      rows.padding ? 1 : static_cast<size_t>(element_count(array.shape)) * size_of(array.dtype);
  cell.offsets = std::move(rows.offsets);
  cell.part_ends = std::move(rows.ends);
  Field field{.name = column.name,
              .kind = FieldKind::kTensor,
              .dtype = rows.padding ? DType::kBool : array.dtype};
  if (!rows.padding) field.shape = array.shape;
  field.shape.insert(field.shape.begin(), std::ssize(cell.offsets));
  return field;
}

void read_window(const Cell& cell, int64_t record, std::span<uint8_t> out) {
  const auto end = std::ranges::upper_bound(cell.part_ends, record);  // the end of the record's run
  const int64_t first = end == cell.part_ends.begin() ? 0 : *(end - 1);
  for (size_t i = 0; i < cell.offsets.size(); ++i) {
    const int64_t wanted = record + cell.offsets[i];
    const int64_t row = std::clamp(wanted, first, *end - 1);
    if (cell.data) {
      std::copy_n(cell.data + static_cast<size_t>(row) * cell.bytes, cell.bytes,
                  out.begin() + static_cast<std::ptrdiff_t>(i * cell.bytes));
    } else {
      out[i] = row != wanted;
    }
  }
}

}  // namespace headrace
