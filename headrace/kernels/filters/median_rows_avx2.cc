// SPDX-License-Identifier: Apache-2.0
// Medians with AVX2 and FMA. Twin: the loops of median_rows.cc.
#include "headrace/kernels/filters/median_rows_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx2,fma");

namespace headrace {
namespace {

using Bytes = __m256i;
constexpr int kBytes = 32;

inline Bytes bytes_at(const uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
inline void store(uint8_t* to, Bytes v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v); }
inline Bytes least_of(Bytes a, Bytes b) { return _mm256_min_epu8(a, b); }
inline Bytes most_of(Bytes a, Bytes b) { return _mm256_max_epu8(a, b); }

}  // namespace
}  // namespace headrace

// After its lanes:
#include "headrace/kernels/filters/median_rows_loops.h"

namespace headrace {

const MedianKernels* median_kernels_avx2() { return &kKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const MedianKernels* median_kernels_avx2() { return nullptr; }
}  // namespace headrace

#endif
