// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/filters/median_rows.h"

#include <algorithm>
#include <cstddef>

#include "headrace/kernels/dispatch.h"

namespace headrace {
namespace {

// Lanes of one byte, for the loop below.
using Bytes = uint8_t;
constexpr int kBytes = 1;

Bytes bytes_at(const uint8_t* from) { return *from; }
void store(uint8_t* to, Bytes v) { *to = v; }
Bytes least_of(Bytes a, Bytes b) { return std::min(a, b); }
Bytes most_of(Bytes a, Bytes b) { return std::max(a, b); }

}  // namespace
}  // namespace headrace

// After its lanes:
#include "headrace/kernels/filters/median_rows_loops.h"

namespace headrace {

void median_row(const uint8_t* const rows[], int size, int count, uint8_t* out) {
  static const ByLevel<const MedianKernels*> by_level{
      &kKernels, median_kernels_avx2(), median_kernels_avx512(), median_kernels_neon()};
  by_level.in_force()->of[size / 2 - 1](rows, count, out);
}

}  // namespace headrace
