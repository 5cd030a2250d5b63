// SPDX-License-Identifier: Apache-2.0
// The inverse DCT of four blocks at once, one in every 128-bit lane. Inlined into the functions of
// AVX-512 files; nobody else calls it. Twin: idct_block().
//
// Whoever has coefficients in registers uses it so:
//   IdctQuad quad;                     // group[v]: the v-th 16 bytes of each of the four blocks,
//   quad.group[v] = ...;               //   in the order of Note [Order of a block]
//   idct_quad(quad, table.step.data(), out, stride);   // writes 8 rows of 32 samples
#pragma once

#include "headrace/kernels/idct_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <type_traits>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl," \
                                                   "avx512vbmi,avx512vnni"))),           \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")
#endif

namespace headrace {
namespace {

struct IdctQuad {
  __m512i group[8];
};

inline __m512i word_pair_512(int first, int second) {
  return _mm512_set1_epi32(static_cast<int>((static_cast<uint32_t>(first) & 0xffff) |
                                            static_cast<uint32_t>(second) << 16));
}

// One dimension of a pair of rows, or columns, in every 32 bits: (x0, x4), (x2, x6), (x7, x1),
// (x3, x5) -> sums[0..7], before the shift.
[[gnu::always_inline]] inline void idct_transform_512(const __m512i pair[4], __m512i round,
                                                      __m512i sums[8]) {
  constexpr int kOne = 1 << kIdctBits;
  const __m512i swapped = _mm512_rol_epi32(pair[0], 16);
  // (x0 + x4, x0 - x4), in 16 bits, which wrap
  const __m512i even =
      _mm512_mask_sub_epi16(_mm512_add_epi16(pair[0], swapped), 0xaaaaaaaa, swapped, pair[0]);
  const __m512i even0 = _mm512_dpwssd_epi32(round, even, word_pair_512(kOne, 0));
  const __m512i even1 = _mm512_dpwssd_epi32(round, even, word_pair_512(0, kOne));
  const __m512i out0 = _mm512_dpwssd_epi32(even0, pair[1], word_pair_512(kF0541 + kF0765, kF0541));
  const __m512i out3 =
      _mm512_dpwssd_epi32(even0, pair[1], word_pair_512(-kF0541 - kF0765, -kF0541));
  const __m512i out1 = _mm512_dpwssd_epi32(even1, pair[1], word_pair_512(kF0541, kF0541 - kF1847));
  const __m512i out2 = _mm512_dpwssd_epi32(even1, pair[1], word_pair_512(-kF0541, kF1847 - kF0541));
  const __m512i z = _mm512_add_epi16(pair[2], pair[3]);
  const __m512i turn3 = _mm512_madd_epi16(z, word_pair_512(kF1175 - kF1961, kF1175));
  const __m512i turn4 = _mm512_madd_epi16(z, word_pair_512(kF1175, kF1175 - kF0390));
  const __m512i odd0 = _mm512_dpwssd_epi32(turn3, pair[2], word_pair_512(kF0298 - kF0899, -kF0899));
  const __m512i odd1 = _mm512_dpwssd_epi32(turn4, pair[3], word_pair_512(-kF2562, kF2053 - kF2562));
  const __m512i odd2 = _mm512_dpwssd_epi32(turn3, pair[3], word_pair_512(kF3072 - kF2562, -kF2562));
  const __m512i odd3 = _mm512_dpwssd_epi32(turn4, pair[2], word_pair_512(-kF0899, kF1501 - kF0899));
  sums[0] = _mm512_add_epi32(out0, odd3);
  sums[7] = _mm512_sub_epi32(out0, odd3);
  sums[1] = _mm512_add_epi32(out1, odd2);
  sums[6] = _mm512_sub_epi32(out1, odd2);
  sums[2] = _mm512_add_epi32(out2, odd1);
  sums[5] = _mm512_sub_epi32(out2, odd1);
  sums[3] = _mm512_add_epi32(out3, odd0);
  sums[4] = _mm512_sub_epi32(out3, odd0);
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

[[gnu::always_inline]] inline __m512i broadcast_16_bytes(const int16_t* from) {
  return _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(from)));
}

// For values that no encoder makes: libjpeg-turbo's wrap-around depends on what the block holds.
[[gnu::noinline, gnu::cold]] inline void idct_quad_scalar(const int16_t* groups,
                                                          const int16_t* step, uint8_t* out,
                                                          ptrdiff_t stride) {
  for (int b = 0; b < 4; ++b) {
    int16_t words[64];
    for (int i = 0; i < 64; ++i) words[i] = groups[i / 8 * 32 + b * 8 + i % 8];
    idct_block(words, step, out + 8 * b, stride);
  }
}

// Four blocks side by side -> 8 rows of 32 samples. `step` is IdctTable::step.
[[gnu::always_inline]] inline void idct_quad(const IdctQuad& quad, const int16_t* step,
                                             uint8_t* out, ptrdiff_t stride) {
  __m512i x[8];
#pragma GCC unroll 8
  for (int v = 0; v < 8; ++v) {
    x[v] = _mm512_mullo_epi16(quad.group[v], broadcast_16_bytes(step + 8 * v));
  }
  // A first row beyond 13 bits may meet the shortcut's wrap-around.
  const __m512i limit = _mm512_set1_epi16(8192);
  const __mmask32 beyond = _mm512_mask_cmpge_epu16_mask(0x55555555, _mm512_add_epi16(x[0], limit),
                                                        _mm512_set1_epi16(16384)) |
                           _mm512_mask_cmpge_epu16_mask(0x55555555, _mm512_add_epi16(x[1], limit),
                                                        _mm512_set1_epi16(16384));
  if (__builtin_expect(beyond != 0, 0)) {
    alignas(64) int16_t groups[8 * 32];
    for (int v = 0; v < 8; ++v) _mm512_store_si512(groups + 32 * v, quad.group[v]);
    return idct_quad_scalar(groups, step, out, stride);
  }

  __m512i rows[8];  // two rows of the first pass's results at four columns: [half * 4 + rows / 2]
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    const __m512i pair[4] = {x[half], x[2 + half], x[4 + half], x[6 + half]};
    __m512i sums[8];
    idct_transform_512(pair, _mm512_set1_epi32(kIdctRound1), sums);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      rows[half * 4 + i] = _mm512_packs_epi32(_mm512_srai_epi32(sums[2 * i], kIdctShift1),
                                              _mm512_srai_epi32(sums[2 * i + 1], kIdctShift1));
    }
  }
  const __m512i sign = _mm512_set1_epi8(-128);
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {  // of the rows
    const auto pick = [&](int columns, auto which) {
      return _mm512_castps_si512(
          _mm512_shuffle_ps(_mm512_castsi512_ps(rows[columns * 4 + half * 2]),
                            _mm512_castsi512_ps(rows[columns * 4 + half * 2 + 1]), which.value));
    };
    const std::integral_constant<int, 0x88> first;
    const std::integral_constant<int, 0xdd> second;
    const __m512i pair[4] = {pick(0, first), pick(0, second), pick(1, first), pick(1, second)};
    __m512i sums[8], columns[2];
    idct_transform_512(pair, _mm512_set1_epi32(kIdctRound2), sums);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) sums[i] = _mm512_srai_epi32(sums[i], kIdctShift2);
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const __m512i bytes =
          _mm512_packs_epi16(_mm512_packs_epi32(sums[4 * i], sums[4 * i + 1]),
                             _mm512_packs_epi32(sums[4 * i + 2], sums[4 * i + 3]));
      columns[i] = _mm512_xor_si512(bytes, sign);  // -128..127 -> 0..255
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const __m512i two_rows = _mm512_permutex2var_epi8(
          columns[0], _mm512_load_si512(kIdctStoreOrder.from[i]), columns[1]);
      uint8_t* const to = out + (half * 4 + i * 2) * stride;
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_castsi512_si256(two_rows));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + stride),
                          _mm512_extracti64x4_epi64(two_rows, 1));
    }
  }
}

}  // namespace
}  // namespace headrace

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif
