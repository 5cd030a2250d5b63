// SPDX-License-Identifier: Apache-2.0
// Pairs of symbols with AVX-512, sixteen entries at a time. Twin: pairs() of huffman_table.cc.
#include "headrace/kernels/jpeg/huffman_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx512f");

namespace headrace {
namespace {

using namespace huffman;

void pairs(const uint32_t* singles, uint32_t* entries) {
  const __m512i lookup_bits = _mm512_set1_epi32(kAcBits);
  const __m512i iota = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  for (int i = 0; i < kAcSize; i += 16) {
    const __m512i first = _mm512_loadu_si512(singles + i);
    const __m512i bits = _mm512_and_si512(first, _mm512_set1_epi32(63));
    const __m512i advance = _mm512_and_si512(first, _mm512_set1_epi32(127 << 8));
    const __mmask16 may_lead = _mm512_testn_epi32_mask(first, _mm512_set1_epi32(kRare | kEnd)) &
                               _mm512_cmplt_epi32_mask(advance, _mm512_set1_epi32(16 << 8)) &
                               _mm512_cmplt_epi32_mask(bits, lookup_bits);
    const __m512i after =
        _mm512_and_si512(_mm512_sllv_epi32(_mm512_add_epi32(iota, _mm512_set1_epi32(i)), bits),
                         _mm512_set1_epi32(kAcSize - 1));
    const __m512i second =
        _mm512_mask_i32gather_epi32(_mm512_set1_epi32(kRare), may_lead, after, singles, 4);
    const __m512i all = _mm512_add_epi32(bits, _mm512_and_si512(second, _mm512_set1_epi32(63)));
    const __m512i size = _mm512_and_si512(_mm512_srli_epi32(second, 16), _mm512_set1_epi32(15));
    const __mmask16 follows = _mm512_testn_epi32_mask(second, _mm512_set1_epi32(kRare)) &
                              _mm512_cmple_epi32_mask(_mm512_sub_epi32(all, size), lookup_bits) &
                              _mm512_cmple_epi32_mask(all, _mm512_set1_epi32(kMostBits));
    const __m512i as_first = _mm512_add_epi32(
        _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_slli_epi32(bits, 28)),
                         _mm512_add_epi32(advance, _mm512_slli_epi32(advance, 16))),
        _mm512_slli_epi32(_mm512_and_si512(first, _mm512_set1_epi32(15 << 16)), 4));
    _mm512_storeu_si512(entries + i, _mm512_mask_add_epi32(first, follows, second, as_first));
  }
}

}  // namespace

HuffmanPairs huffman_pairs_avx512() { return pairs; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
HuffmanPairs huffman_pairs_avx512() { return nullptr; }
}  // namespace headrace

#endif
