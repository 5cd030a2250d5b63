// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/color/table_rows.h"

namespace headrace::scalar {
namespace {

void look_up(const uint8_t table[256], const TableForm&, const uint8_t* in, int count,
             uint8_t* out) {
  for (int i = 0; i < count; ++i) out[i] = table[in[i]];
}

}  // namespace
}  // namespace headrace::scalar

#define HEADRACE_OWN_SCALAR
#define HEADRACE_AVX2_KERNEL "headrace/kernels/color/table_rows_avx2.h"
#define HEADRACE_AVX512_KERNEL "headrace/kernels/color/table_rows_avx512.h"
#define HEADRACE_NEON_KERNEL "headrace/kernels/color/table_rows_neon.h"
#include "headrace/kernels/each_level.h"

namespace headrace {

void look_up_row(const uint8_t table[256], const TableForm& form, const uint8_t* in, int count,
                 uint8_t* out) {
  HEADRACE_BY_LEVEL(look_up)(table, form, in, count, out);
}

}  // namespace headrace
