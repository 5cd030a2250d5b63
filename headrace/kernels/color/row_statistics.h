// SPDX-License-Identifier: Apache-2.0
// Statistics of 8-bit rows that color operators need before they are applied. Any thread may call
// them.
#pragma once

#include <cstdint>

namespace headrace {

uint64_t sum_of_row(const uint8_t* row, int64_t count);
// Extends the range [least, most] to the values of the row.
void extend_by_row(const uint8_t* row, int64_t count, uint8_t& least, uint8_t& most);
// Adds how often each value occurs.
void count_row(const uint8_t* row, int64_t count, int64_t histogram[256]);

}  // namespace headrace
