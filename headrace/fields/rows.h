// SPDX-License-Identifier: Apache-2.0
// Row groups: boxes, their labels, areas, masks and keypoints, with one row per object. A row that
// is removed from one field is removed from all of them.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/fields/record.h"

namespace headrace {

// The number of rows of a value. REQUIRES: it has at least one axis.
inline int64_t row_count(const FieldValue& value) { return value.shape[0]; }

// Selects rows by number, in this order; -1 gives a row of zeros. REQUIRES: the value's bytes are
// dense rows, and the numbers are below row_count().
void take_rows(FieldValue& value, const std::vector<int64_t>& rows);

// Concatenates the rows of all parts in the first one. The others lose their memory. REQUIRES: at
// least one part; shapes differ only in the number of rows.
void join_rows(const std::vector<FieldValue*>& parts);

}  // namespace headrace
