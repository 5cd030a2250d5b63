// SPDX-License-Identifier: Apache-2.0
// Shared by steps that put several records onto one canvas: their rows become one record's.
#pragma once

#include <span>

#include "headrace/ops/op.h"

namespace headrace {

// HR0514 where the rows of the step's row group differ in number within a record.
Result<void> check_row_counts(const Record& record, std::span<const int> rows);

// The rows of all records, one after the other, as the first one's. The others are used up. HR0516
// where they take more than the renderer's largest_value().
Result<void> join_records(std::span<Record* const> records, std::span<const int> rows,
                          const Renderer& renderer);

}  // namespace headrace
