// SPDX-License-Identifier: Apache-2.0
// The inverse DCT of four blocks at once, one in every 128-bit lane. Inlined into the functions of
// AVX-512 files; not called from anywhere else. Scalar reference: idct_block().
//
// Usage with coefficients in registers:
//   IdctQuads quads(table.step.data(), stride);
//   quad.group[v] = ...;      // the v-th 16 bytes of each block (see Note [Order of a block])
//   quads.add(quad, out);     // out: 8 rows of 32 samples
//   quads.finish();           // writes the last ones
#pragma once

#include "headrace/kernels/jpeg/idct_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <type_traits>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni");

namespace headrace {
namespace {

struct IdctQuad {
  __m512i group[8];
};

[[gnu::always_inline]] inline __m512i idct_weight(const int32_t& weight) {
  return _mm512_set1_epi32(weight);
}

// One dimension of the transform, for pairs of rows, or columns, in each 32 bits: (x0, x4), (x2,
// x6), (x7, x1), (x3, x5) -> sums[0..7], before the shift.
[[gnu::always_inline]] inline void idct_transform_512(const __m512i pair[4], __m512i round,
                                                      __m512i sums[8]) {
  const IdctWeights& w = kIdctWeights;
  const __m512i swapped = _mm512_rol_epi32(pair[0], 16);
  // (x0 + x4, x0 - x4), in 16 bits, which wrap
  const __m512i even =
      _mm512_mask_sub_epi16(_mm512_add_epi16(pair[0], swapped), 0xaaaaaaaa, swapped, pair[0]);
  const __m512i even0 = _mm512_dpwssd_epi32(round, even, idct_weight(w.even0));
  const __m512i even1 = _mm512_dpwssd_epi32(round, even, idct_weight(w.even1));
  const __m512i even2 = _mm512_madd_epi16(pair[1], idct_weight(w.even2));
  const __m512i even3 = _mm512_madd_epi16(pair[1], idct_weight(w.even3));
  const __m512i z = _mm512_add_epi16(pair[2], pair[3]);
  const __m512i turn3 = _mm512_madd_epi16(z, idct_weight(w.turn3));
  const __m512i turn4 = _mm512_madd_epi16(z, idct_weight(w.turn4));
  const __m512i out[4] = {_mm512_add_epi32(even0, even3), _mm512_add_epi32(even1, even2),
                          _mm512_sub_epi32(even1, even2), _mm512_sub_epi32(even0, even3)};
  const __m512i odd[4] = {_mm512_dpwssd_epi32(turn4, pair[2], idct_weight(w.odd3)),
                          _mm512_dpwssd_epi32(turn3, pair[3], idct_weight(w.odd2)),
                          _mm512_dpwssd_epi32(turn4, pair[3], idct_weight(w.odd1)),
                          _mm512_dpwssd_epi32(turn3, pair[2], idct_weight(w.odd0))};
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    sums[i] = _mm512_add_epi32(out[i], odd[i]);
    sums[7 - i] = _mm512_sub_epi32(out[i], odd[i]);
  }
}

// The last step's byte order. From two vectors, columns 0..3 and 4..7 of four rows of each block
// ([block][column][row]), to two rows of 32 samples ([row][block][column]).
struct IdctStoreOrder {
  alignas(64) uint8_t from[2][64]{};
};
constexpr IdctStoreOrder kIdctStoreOrder = [] {
  IdctStoreOrder order;
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    for (int i = 0; i < 64; ++i) {
      const int row = 2 * half + i / 32, block = i / 8 % 4, column = i % 8;
      order.from[half][i] =
          static_cast<uint8_t>(column / 4 * 64 + block * 16 + column % 4 * 4 + row);
    }
  }
  return order;
}();

// Two rows of the first pass's results for four columns each: word[half * 4 + rows / 2].
struct IdctQuadRows {
  __m512i word[8];
};

// The first pass on half of the columns. Returns its products of the first and the fifth row, for
// check_first_rows().
template <int kHalf>
[[gnu::always_inline]] inline __m512i idct_first_half(const IdctQuad& quad, const int16_t* step,
                                                      IdctQuadRows& rows) {
  __m512i pair[4], sums[8];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const int v = 2 * i + kHalf;
    pair[i] = _mm512_mullo_epi16(quad.group[v], _mm512_load_si512(step + 32 * v));
  }
  idct_transform_512(pair, idct_weight(kIdctWeights.round1), sums);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    rows.word[kHalf * 4 + i] = _mm512_packs_epi32(_mm512_srai_epi32(sums[2 * i], kIdctShift1),
                                                  _mm512_srai_epi32(sums[2 * i + 1], kIdctShift1));
  }
  return pair[0];
}

// Note [Where the first row wraps]
[[gnu::always_inline]] inline void check_first_rows(__m512i first0, __m512i first1,
                                                    const IdctQuad& quad, const int16_t* step,
                                                    IdctQuadRows& rows) {
  const __m512i limit = idct_weight(kIdctWeights.limit);
  const __m512i sums =
      _mm512_or_si512(_mm512_add_epi16(first0, limit), _mm512_add_epi16(first1, limit));
  const __mmask16 beyond = _mm512_test_epi32_mask(sums, idct_weight(kIdctWeights.beyond));
  if (__builtin_expect(_mm512_kortestz(beyond, beyond), 1)) return;
  alignas(64) int16_t groups[256], words[256];
#pragma GCC unroll 8
  for (int v = 0; v < 8; ++v) {
    _mm512_store_si512(groups + 32 * v, quad.group[v]);
    _mm512_store_si512(words + 32 * v, rows.word[v]);
  }
  wrap_first_rows(groups, step, 4, words);
#pragma GCC unroll 8
  for (int v = 0; v < 8; ++v) rows.word[v] = _mm512_load_si512(words + 32 * v);
}

// The second pass on half of the rows, and its samples.
template <int kHalf>
[[gnu::always_inline]] inline void idct_second_half(const IdctQuadRows& rows, uint8_t* out,
                                                    ptrdiff_t stride) {
  const __m512 low[2] = {_mm512_castsi512_ps(rows.word[2 * kHalf]),
                         _mm512_castsi512_ps(rows.word[2 * kHalf + 1])};
  const __m512 high[2] = {_mm512_castsi512_ps(rows.word[4 + 2 * kHalf]),
                          _mm512_castsi512_ps(rows.word[4 + 2 * kHalf + 1])};
  const __m512i pair[4] = {_mm512_castps_si512(_mm512_shuffle_ps(low[0], low[1], 0x88)),
                           _mm512_castps_si512(_mm512_shuffle_ps(low[0], low[1], 0xdd)),
                           _mm512_castps_si512(_mm512_shuffle_ps(high[0], high[1], 0x88)),
                           _mm512_castps_si512(_mm512_shuffle_ps(high[0], high[1], 0xdd))};
  __m512i sums[8], columns[2];
  idct_transform_512(pair, idct_weight(kIdctWeights.round2), sums);
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) sums[i] = _mm512_srai_epi32(sums[i], kIdctShift2);
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const __m512i bytes = _mm512_packs_epi16(_mm512_packs_epi32(sums[4 * i], sums[4 * i + 1]),
                                             _mm512_packs_epi32(sums[4 * i + 2], sums[4 * i + 3]));
    columns[i] = _mm512_xor_si512(bytes, idct_weight(kIdctWeights.sign));  // -128 -> 0
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const __m512i two_rows = _mm512_permutex2var_epi8(
        columns[0], _mm512_load_si512(kIdctStoreOrder.from[i]), columns[1]);
    uint8_t* const to = out + (kHalf * 4 + i * 2) * stride;
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_castsi512_si256(two_rows));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + stride),
                        _mm512_extracti64x4_epi64(two_rows, 1));
  }
}

}  // namespace
}  // namespace headrace

#include "headrace/kernels/jpeg/idct_stream_loops.h"

namespace headrace {
namespace {

using IdctQuads = IdctStream<IdctQuad, IdctQuadRows>;

}  // namespace
}  // namespace headrace

HEADRACE_TARGET_END;

#endif
