// SPDX-License-Identifier: Apache-2.0
// Pairs of symbols with AVX2, eight entries at a time. Twin: pairs() of huffman_table.cc.
#include "headrace/kernels/jpeg/huffman_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx2");

namespace headrace {
namespace {

using namespace huffman;

__m256i less_than(__m256i a, int bound) { return _mm256_cmpgt_epi32(_mm256_set1_epi32(bound), a); }
__m256i has_none(__m256i a, int bits) {
  return _mm256_cmpeq_epi32(_mm256_and_si256(a, _mm256_set1_epi32(bits)), _mm256_setzero_si256());
}

void pairs(const uint32_t* singles, uint32_t* entries) {
  const __m256i iota = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  for (int i = 0; i < kAcSize; i += 8) {
    const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(singles + i));
    const __m256i bits = _mm256_and_si256(first, _mm256_set1_epi32(63));
    const __m256i advance = _mm256_and_si256(first, _mm256_set1_epi32(127 << 8));
    const __m256i may_lead =
        _mm256_and_si256(has_none(first, kRare | kEnd),
                         _mm256_and_si256(less_than(advance, 16 << 8), less_than(bits, kAcBits)));
    const __m256i after =
        _mm256_and_si256(_mm256_sllv_epi32(_mm256_add_epi32(iota, _mm256_set1_epi32(i)), bits),
                         _mm256_set1_epi32(kAcSize - 1));
    const __m256i second = _mm256_mask_i32gather_epi32(
        _mm256_set1_epi32(kRare), reinterpret_cast<const int*>(singles), after, may_lead, 4);
    const __m256i all = _mm256_add_epi32(bits, _mm256_and_si256(second, _mm256_set1_epi32(63)));
    const __m256i size = _mm256_and_si256(_mm256_srli_epi32(second, 16), _mm256_set1_epi32(15));
    const __m256i follows =
        _mm256_and_si256(has_none(second, kRare),
                         _mm256_and_si256(less_than(_mm256_sub_epi32(all, size), kAcBits + 1),
                                          less_than(all, kMostBits + 1)));
    const __m256i as_first = _mm256_add_epi32(
        _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_slli_epi32(bits, 28)),
                         _mm256_add_epi32(advance, _mm256_slli_epi32(advance, 16))),
        _mm256_slli_epi32(_mm256_and_si256(first, _mm256_set1_epi32(15 << 16)), 4));
    const __m256i entry = _mm256_blendv_epi8(first, _mm256_add_epi32(second, as_first), follows);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(entries + i), entry);
  }
}

}  // namespace

HuffmanPairs huffman_pairs_avx2() { return pairs; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
HuffmanPairs huffman_pairs_avx2() { return nullptr; }
}  // namespace headrace

#endif
