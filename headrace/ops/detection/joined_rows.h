// SPDX-License-Identifier: Apache-2.0
// Shared by steps that combine several records on one canvas: concatenates their rows.
#pragma once

#include <span>

#include "headrace/ops/op.h"

namespace headrace {

// HR0514 if the fields of the step's row group differ in row count within a record.
Result<void> check_row_counts(const Record& record, std::span<const int> rows);

// Concatenates the rows of all records into the first one. The others are consumed. HR0516 if the
// result exceeds the renderer's largest_value().
Result<void> join_records(std::span<Record* const> records, std::span<const int> rows,
                          const Renderer& renderer);

}  // namespace headrace
