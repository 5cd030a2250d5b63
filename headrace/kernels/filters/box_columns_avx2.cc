// SPDX-License-Identifier: Apache-2.0
// Box filters with AVX2. Twin: the loop of box_columns.cc.
#include "headrace/kernels/filters/box_columns_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx2,fma");

namespace headrace {
namespace {

struct Sixteen {  // numbers of 32 bits
  __m256i low, high;
};

inline Sixteen numbers_at(const uint8_t* from) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return {_mm256_cvtepu8_epi32(bytes), _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8))};
}
inline Sixteen all_numbers(uint32_t v) {
  const __m256i all = _mm256_set1_epi32(static_cast<int>(v));
  return {all, all};
}
inline Sixteen sum(Sixteen a, Sixteen b) {
  return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
}
inline Sixteen difference(Sixteen a, Sixteen b) {
  return {_mm256_sub_epi32(a.low, b.low), _mm256_sub_epi32(a.high, b.high)};
}
inline Sixteen product(Sixteen a, uint32_t b) {
  const __m256i all = _mm256_set1_epi32(static_cast<int>(b));
  return {_mm256_mullo_epi32(a.low, all), _mm256_mullo_epi32(a.high, all)};
}
inline void store_upper_bytes(uint8_t* to, Sixteen v) {
  const __m256i words =
      _mm256_packus_epi32(_mm256_srli_epi32(v.low, 24), _mm256_srli_epi32(v.high, 24));
  const __m256i in_order = _mm256_permute4x64_epi64(words, 0xd8);
  _mm_storeu_si128(
      reinterpret_cast<__m128i*>(to),
      _mm_packus_epi16(_mm256_castsi256_si128(in_order), _mm256_extracti128_si256(in_order, 1)));
}

}  // namespace
}  // namespace headrace

// After its lanes:
#include "headrace/kernels/filters/box_columns_loops.h"

namespace headrace {

BoxColumns box_columns_avx2() { return filter_box_columns; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
BoxColumns box_columns_avx2() { return nullptr; }
}  // namespace headrace

#endif
