// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/mean_rows.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "headrace/kernels/dispatch.h"

namespace headrace {
namespace {

// Lanes of one number, for the loop below.
using Numbers = uint32_t;
constexpr int kLanes = 1;

Numbers all(int v) { return static_cast<Numbers>(v); }
Numbers numbers_at(const uint8_t* from) { return *from; }
Numbers sum(Numbers a, Numbers b) { return a + b; }
Numbers subtracted(Numbers a, Numbers b) { return a - b; }
Numbers product(Numbers a, Numbers b) { return a * b; }
Numbers least_of(Numbers a, Numbers b) { return std::min(a, b); }
Numbers common(Numbers a, Numbers b) { return a & b; }
template <int bits>
Numbers shifted_down(Numbers v) {
  return v >> bits;
}
void store_bytes(uint8_t* to, Numbers v) { *to = static_cast<uint8_t>(v); }

}  // namespace
}  // namespace headrace

// After its lanes:
#include "headrace/kernels/mean_rows_loops.h"

namespace headrace {

void mean_row(const uint8_t* const rows[], int n, int count, uint8_t* out) {
  static const std::array<const MeanKernels*, 3> by_level{&kKernels, mean_kernels_avx2(),
                                                          mean_kernels_avx512()};
  by_level[static_cast<size_t>(simd_level())]->mean(rows, n, count, out);
}

}  // namespace headrace
