// SPDX-License-Identifier: Apache-2.0
// Box filters with AVX-512. Twin: the loop of box_columns.cc.
#include "headrace/kernels/filters/box_columns_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx512f,avx512bw,avx512vl");

namespace headrace {
namespace {

using Sixteen = __m512i;  // numbers of 32 bits

inline Sixteen numbers_at(const uint8_t* from) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
inline Sixteen all_numbers(uint32_t v) { return _mm512_set1_epi32(static_cast<int>(v)); }
inline Sixteen sum(Sixteen a, Sixteen b) { return _mm512_add_epi32(a, b); }
inline Sixteen difference(Sixteen a, Sixteen b) { return _mm512_sub_epi32(a, b); }
inline Sixteen product(Sixteen a, uint32_t b) { return _mm512_mullo_epi32(a, all_numbers(b)); }
inline void store_upper_bytes(uint8_t* to, Sixteen v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(_mm512_srli_epi32(v, 24)));
}

}  // namespace
}  // namespace headrace

// After its lanes:
#include "headrace/kernels/filters/box_columns_loops.h"

namespace headrace {

BoxColumns box_columns_avx512() { return filter_box_columns; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
BoxColumns box_columns_avx512() { return nullptr; }
}  // namespace headrace

#endif
