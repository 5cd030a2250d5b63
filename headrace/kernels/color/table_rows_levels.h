// SPDX-License-Identifier: Apache-2.0
// What each SIMD level implements for table_rows.cc. Internal to kernels/.
#pragma once

#include <cstdint>

#include "headrace/kernels/color/table_form.h"

namespace headrace {

using LookUpRow = void (*)(const uint8_t table[256], const TableForm& form, const uint8_t* in,
                           int count, uint8_t* out);

// Null where the architecture has no such level.
LookUpRow look_up_row_avx2();
LookUpRow look_up_row_avx512();
LookUpRow look_up_row_neon();

}  // namespace headrace
