// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/table_rows.h"

#include <array>
#include <cstddef>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/table_rows_levels.h"

namespace headrace {
namespace {

void look_up(const uint8_t table[256], const uint8_t* in, int count, uint8_t* out) {
  for (int i = 0; i < count; ++i) out[i] = table[in[i]];
}

}  // namespace

void look_up_row(const uint8_t table[256], const uint8_t* in, int count, uint8_t* out) {
  static const std::array<LookUpRow, 3> by_level{look_up, look_up_row_avx2(), look_up_row_avx512()};
  by_level[static_cast<size_t>(simd_level())](table, in, count, out);
}

}  // namespace headrace
