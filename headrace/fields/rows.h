// SPDX-License-Identifier: Apache-2.0
// Rows that belong together: boxes, their labels, areas, masks and points, a row for each object. A
// row that is removed from one is removed from all of them.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/fields/record.h"

namespace headrace {

// How many rows the value has. REQUIRES: it has a first axis.
inline int64_t row_count(const FieldValue& value) { return value.shape[0]; }

// The value's rows with these numbers, in this order; -1 is a row of zeros.
// REQUIRES: its bytes are dense rows; numbers below row_count.
void take_rows(FieldValue& value, const std::vector<int64_t>& rows);

// The rows of all parts, one after the other, as the first one's. The others are used up.
// REQUIRES: shapes that differ in rows alone; never empty.
void join_rows(const std::vector<FieldValue*>& parts);

}  // namespace headrace
