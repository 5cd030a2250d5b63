// SPDX-License-Identifier: Apache-2.0
// Maps 8-bit rows through a table of 256 values: for color operators that map each sample by its
// value alone.
//
// Any thread may call it. It may read and write up to 63 bytes past `count` samples. In and out may
// be the same row.
#pragma once

#include <cstdint>

#include "headrace/kernels/color/table_form.h"

namespace headrace {

// out[i] = table[in[i]]. REQUIRES: `form` is the table's form, or kNone.
void look_up_row(const uint8_t table[256], const TableForm& form, const uint8_t* in, int count,
                 uint8_t* out);

}  // namespace headrace
