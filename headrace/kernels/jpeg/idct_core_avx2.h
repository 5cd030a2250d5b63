// SPDX-License-Identifier: Apache-2.0
// The inverse DCT of two blocks at once, one in each 128-bit lane. Inlined into the functions of
// AVX2 files; not called from anywhere else. Reference: idct_block(). Same algorithm as
// idct_core_avx512.h.
//
//   IdctTwos twos(table.step.data(), stride);
//   two.group[v] = ...;     // the v-th 16 bytes of both blocks (see Note [Order of a block])
//   twos.add(two, out);     // out: 8 rows of 16 samples
//   twos.finish();          // writes the last ones
#pragma once

#include "headrace/kernels/jpeg/idct_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <type_traits>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx2");

namespace headrace {
namespace {

struct IdctTwo {
  __m256i group[8];
};

inline __m256i word_pair_256(int first, int second) {
  return _mm256_set1_epi32(static_cast<int>((static_cast<uint32_t>(first) & 0xffff) |
                                            static_cast<uint32_t>(second) << 16));
}

// One dimension of the transform, for pairs of rows, or columns, in each 32 bits: (x0, x4), (x2,
// x6), (x7, x1), (x3, x5) -> sums[0..7], before the shift.
[[gnu::always_inline]] inline void idct_transform_256(const __m256i pair[4], __m256i round,
                                                      __m256i sums[8]) {
  const __m256i swapped =
      _mm256_shuffle_epi8(pair[0], _mm256_broadcastsi128_si256(_mm_setr_epi8(
                                       2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13)));
  // (x0 + x4, x0 - x4), in 16 bits, which wrap
  const __m256i even = _mm256_add_epi16(swapped, _mm256_sign_epi16(pair[0], word_pair_256(1, -1)));
  constexpr int kOne = 1 << kIdctBits;
  const __m256i even0 = _mm256_add_epi32(round, _mm256_madd_epi16(even, word_pair_256(kOne, 0)));
  const __m256i even1 = _mm256_add_epi32(round, _mm256_madd_epi16(even, word_pair_256(0, kOne)));
  const __m256i even2 = _mm256_madd_epi16(pair[1], word_pair_256(kF0541, kF0541 - kF1847));
  const __m256i even3 = _mm256_madd_epi16(pair[1], word_pair_256(kF0541 + kF0765, kF0541));
  const __m256i out0 = _mm256_add_epi32(even0, even3), out3 = _mm256_sub_epi32(even0, even3);
  const __m256i out1 = _mm256_add_epi32(even1, even2), out2 = _mm256_sub_epi32(even1, even2);
  const __m256i z = _mm256_add_epi16(pair[2], pair[3]);
  const __m256i turn3 = _mm256_madd_epi16(z, word_pair_256(kF1175 - kF1961, kF1175));
  const __m256i turn4 = _mm256_madd_epi16(z, word_pair_256(kF1175, kF1175 - kF0390));
  const auto odd = [&](__m256i turn, __m256i words, int first, int second) {
    return _mm256_add_epi32(turn, _mm256_madd_epi16(words, word_pair_256(first, second)));
  };
  const __m256i odd3 = odd(turn4, pair[2], -kF0899, kF1501 - kF0899);
  sums[0] = _mm256_add_epi32(out0, odd3);
  sums[7] = _mm256_sub_epi32(out0, odd3);
  const __m256i odd0 = odd(turn3, pair[2], kF0298 - kF0899, -kF0899);
  sums[3] = _mm256_add_epi32(out3, odd0);
  sums[4] = _mm256_sub_epi32(out3, odd0);
  const __m256i odd2 = odd(turn3, pair[3], kF3072 - kF2562, -kF2562);
  sums[1] = _mm256_add_epi32(out1, odd2);
  sums[6] = _mm256_sub_epi32(out1, odd2);
  const __m256i odd1 = odd(turn4, pair[3], -kF2562, kF2053 - kF2562);
  sums[2] = _mm256_add_epi32(out2, odd1);
  sums[5] = _mm256_sub_epi32(out2, odd1);
}

// Four columns of four rows of each block, [column][row] -> [row][column].
[[gnu::always_inline]] inline __m256i transposed_bytes(__m256i columns) {
  return _mm256_shuffle_epi8(columns, _mm256_broadcastsi128_si256(_mm_setr_epi8(
                                          0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)));
}

[[gnu::always_inline]] inline void store_two_rows(__m256i rows, uint8_t* to, ptrdiff_t stride) {
  rows = _mm256_permute4x64_epi64(rows, 0xd8);  // [block][row] -> [row][block]
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(rows));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to + stride), _mm256_extracti128_si256(rows, 1));
}

// Two rows of the first pass's results for four columns each: word[half * 4 + rows / 2].
struct IdctTwoRows {
  __m256i word[8];
};

// The first pass on half of the columns. Returns its products of the first and the fifth row, for
// check_first_rows().
template <int kHalf>
[[gnu::always_inline]] inline __m256i idct_first_half(const IdctTwo& two, const int16_t* step,
                                                      IdctTwoRows& rows) {
  __m256i pair[4], sums[8];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const int v = 2 * i + kHalf;
    pair[i] = _mm256_mullo_epi16(
        two.group[v], _mm256_load_si256(reinterpret_cast<const __m256i*>(step + 32 * v)));
  }
  idct_transform_256(pair, _mm256_set1_epi32(kIdctRound1), sums);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    rows.word[kHalf * 4 + i] = _mm256_packs_epi32(_mm256_srai_epi32(sums[2 * i], kIdctShift1),
                                                  _mm256_srai_epi32(sums[2 * i + 1], kIdctShift1));
  }
  return pair[0];
}

// Note [Where the first row wraps]
[[gnu::always_inline]] inline void check_first_rows(__m256i first0, __m256i first1,
                                                    const IdctTwo& two, const int16_t* step,
                                                    IdctTwoRows& rows) {
  const __m256i limit = _mm256_set1_epi16(8192);
  const __m256i sums =
      _mm256_or_si256(_mm256_add_epi16(first0, limit), _mm256_add_epi16(first1, limit));
  if (__builtin_expect(_mm256_testz_si256(sums, _mm256_set1_epi32(0xc000)), 1)) return;
  alignas(32) int16_t groups[128], words[128];
#pragma GCC unroll 8
  for (int v = 0; v < 8; ++v) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(groups + 16 * v), two.group[v]);
    _mm256_store_si256(reinterpret_cast<__m256i*>(words + 16 * v), rows.word[v]);
  }
  // The table of steps is laid out for four blocks, the groups here for two.
  wrap_first_rows(groups, step, 2, words);
#pragma GCC unroll 8
  for (int v = 0; v < 8; ++v) {
    rows.word[v] = _mm256_load_si256(reinterpret_cast<const __m256i*>(words + 16 * v));
  }
}

// The second pass on half of the rows, and its samples.
template <int kHalf>
[[gnu::always_inline]] inline void idct_second_half(const IdctTwoRows& rows, uint8_t* out,
                                                    ptrdiff_t stride) {
  const __m256 low[2] = {_mm256_castsi256_ps(rows.word[2 * kHalf]),
                         _mm256_castsi256_ps(rows.word[2 * kHalf + 1])};
  const __m256 high[2] = {_mm256_castsi256_ps(rows.word[4 + 2 * kHalf]),
                          _mm256_castsi256_ps(rows.word[4 + 2 * kHalf + 1])};
  const __m256i pair[4] = {_mm256_castps_si256(_mm256_shuffle_ps(low[0], low[1], 0x88)),
                           _mm256_castps_si256(_mm256_shuffle_ps(low[0], low[1], 0xdd)),
                           _mm256_castps_si256(_mm256_shuffle_ps(high[0], high[1], 0x88)),
                           _mm256_castps_si256(_mm256_shuffle_ps(high[0], high[1], 0xdd))};
  __m256i sums[8], columns[2];
  idct_transform_256(pair, _mm256_set1_epi32(kIdctRound2), sums);
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) sums[i] = _mm256_srai_epi32(sums[i], kIdctShift2);
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(sums[4 * i], sums[4 * i + 1]),
                                             _mm256_packs_epi32(sums[4 * i + 2], sums[4 * i + 3]));
    columns[i] = transposed_bytes(_mm256_xor_si256(bytes, _mm256_set1_epi8(-128)));  // -128 -> 0
  }
  uint8_t* const to = out + kHalf * 4 * stride;
  store_two_rows(_mm256_unpacklo_epi32(columns[0], columns[1]), to, stride);
  store_two_rows(_mm256_unpackhi_epi32(columns[0], columns[1]), to + 2 * stride, stride);
}

}  // namespace
}  // namespace headrace

#include "headrace/kernels/jpeg/idct_stream_loops.h"

namespace headrace {
namespace {

using IdctTwos = IdctStream<IdctTwo, IdctTwoRows>;

}  // namespace
}  // namespace headrace

HEADRACE_TARGET_END;

#endif
