// SPDX-License-Identifier: Apache-2.0
// What each SIMD level implements for box_columns.cc. Internal to kernels/.
#pragma once

#include "headrace/kernels/filters/box_columns.h"

namespace headrace {

using BoxColumns = void (*)(const uint8_t* in, int height, const BoxWeights& weights, uint8_t* out);

// Null where the architecture has no such level.
BoxColumns box_columns_avx2();
BoxColumns box_columns_avx512();
BoxColumns box_columns_neon();

}  // namespace headrace
