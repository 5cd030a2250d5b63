// SPDX-License-Identifier: Apache-2.0
// Medians with AVX-512. Twin: the loops of median_rows.cc.
#include "headrace/kernels/filters/median_rows_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx512f,avx512bw,avx512vl");

namespace headrace {
namespace {

using Bytes = __m512i;
constexpr int kBytes = 64;

inline Bytes bytes_at(const uint8_t* from) { return _mm512_loadu_si512(from); }
inline void store(uint8_t* to, Bytes v) { _mm512_storeu_si512(to, v); }
inline Bytes least_of(Bytes a, Bytes b) { return _mm512_min_epu8(a, b); }
inline Bytes most_of(Bytes a, Bytes b) { return _mm512_max_epu8(a, b); }

}  // namespace
}  // namespace headrace

// After its lanes:
#include "headrace/kernels/filters/median_rows_loops.h"

namespace headrace {

const MedianKernels* median_kernels_avx512() { return &kKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const MedianKernels* median_kernels_avx512() { return nullptr; }
}  // namespace headrace

#endif
