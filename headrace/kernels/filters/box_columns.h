// SPDX-License-Identifier: Apache-2.0
// The extended box filter of Gwosdek et al. (2011) along uint8 columns, with the integer arithmetic
// of Pillow's BoxBlur: all SIMD levels give the same bytes.
//
// Any thread may call it.
#pragma once

#include <cstdint>

namespace headrace {

// A box covers `reach` rows on either side, plus a fraction of the next row.
struct BoxWeights {
  int reach = 0;
  uint32_t inside = 0, end = 0;  // in units of 2^-24

  // REQUIRES: 0 <= radius < 1e6.
  static BoxWeights of(float radius);
};

constexpr int kBoxColumns = 64;

// Filters a strip of kBoxColumns columns, whose rows are next to each other:
//   out(y) = (inside * sum of in(y - reach) to in(y + reach)
//             + end * (in(y - reach - 1) + in(y + reach + 1)) + 2^23) >> 24
// Beyond the ends, the first and the last row are repeated. REQUIRES: height > 0, no overlap.
void box_columns(const uint8_t* in, int height, const BoxWeights& weights, uint8_t* out);

}  // namespace headrace
