// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/color/table_rows.h"

#include <cstddef>

#include "headrace/kernels/color/table_rows_levels.h"
#include "headrace/kernels/dispatch.h"

namespace headrace {
namespace {

void look_up(const uint8_t table[256], const TableForm&, const uint8_t* in, int count,
             uint8_t* out) {
  for (int i = 0; i < count; ++i) out[i] = table[in[i]];
}

}  // namespace

void look_up_row(const uint8_t table[256], const TableForm& form, const uint8_t* in, int count,
                 uint8_t* out) {
  static const ByLevel<LookUpRow> by_level{look_up, look_up_row_avx2(), look_up_row_avx512(),
                                           look_up_row_neon()};
  by_level.in_force()(table, form, in, count, out);
}

}  // namespace headrace
