// SPDX-License-Identifier: Apache-2.0
// Planes -> samples with AVX2. Twin: coefficients_of_planes() and idct_block().
#include "headrace/kernels/jpeg/idct_core_avx2.h"
#include "headrace/kernels/jpeg/packed_blocks_levels.h"
#include "headrace/kernels/jpeg/packed_blocks_order.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx2");

namespace headrace {
namespace {

// What a shuffle takes from the q-th 16 bytes in zigzag order for the i-th 16 in byte order.
struct alignas(64) Quarters {
  uint8_t from[4][4][16]{};
};
constexpr Quarters kQuarters = [] {
  Quarters table;
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    for (int q = 0; q < 4; ++q) {
      for (int byte = 0; byte < 16; ++byte) {
        const int k = kZigzagOfByte.zigzag[16 * i + byte];
        table.from[i][q][byte] = static_cast<uint8_t>(k / 16 == q ? k % 16 : 0x80);
      }
    }
  }
  return table;
}();

// Swaps the bits under `mask` with those `distance` above.
template <int kDistance>
[[gnu::always_inline]] inline __m256i swap_bits(__m256i x, int64_t mask) {
  const __m256i t = _mm256_and_si256(_mm256_xor_si256(x, _mm256_srli_epi64(x, kDistance)),
                                     _mm256_set1_epi64x(mask));
  return _mm256_xor_si256(x, _mm256_xor_si256(t, _mm256_slli_epi64(t, kDistance)));
}

// Eight bytes of eight planes each -> eight signed bytes.
[[gnu::always_inline]] inline __m256i transposed(__m256i x) {
  x = swap_bits<7>(x, 0x00AA00AA00AA00AA);
  x = swap_bits<14>(x, 0x0000CCCC0000CCCC);
  x = swap_bits<28>(x, 0x00000000F0F0F0F0);
  const __m256i negative = _mm256_cmpgt_epi8(_mm256_setzero_si256(), x);
  const __m256i magnitude = _mm256_and_si256(x, _mm256_set1_epi8(127));
  return _mm256_sub_epi8(_mm256_xor_si256(magnitude, negative), negative);
}

// A pair of planes of each of two blocks, a block in each lane.
[[gnu::always_inline]] inline __m256i two_planes(const uint64_t* planes, int pair) {
  const auto at = [&](int block) {
    return _mm_load_si128(reinterpret_cast<const __m128i*>(planes + 8 * block + 2 * pair));
  };
  return _mm256_inserti128_si256(_mm256_castsi128_si256(at(0)), at(1), 1);
}

// Which of a set's planes a quad with so many levels uses.
struct alignas(16) UsedPlanes {
  uint64_t plane[8][8]{};
};
constexpr UsedPlanes kUsedPlanes = [] {
  UsedPlanes used;
  for (int levels = 0; levels < 8; ++levels) {
    for (int p = 0; p < 8; ++p) used.plane[levels][p] = p < levels || p == 7 ? ~uint64_t{0} : 0;
  }
  return used;
}();

// One set of planes of two blocks -> words in the order of the inverse transform.
[[gnu::always_inline]] inline void words_of_planes(const uint64_t* planes, int levels,
                                                   IdctTwo& two) {
  const uint64_t* const used = kUsedPlanes.plane[levels < 7 ? levels : 7];
  // Byte g of all planes, side by side: within a pair by a shuffle, then between pairs.
  const __m256i zip = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
  __m256i pair[4];
#pragma GCC unroll 4
  for (int p = 0; p < 4; ++p) {
    const __m256i mask =
        _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(used + 2 * p)));
    pair[p] = _mm256_shuffle_epi8(_mm256_and_si256(two_planes(planes, p), mask), zip);
  }
  const __m256i low03 = _mm256_unpacklo_epi16(pair[0], pair[1]);
  const __m256i high03 = _mm256_unpackhi_epi16(pair[0], pair[1]);
  const __m256i low47 = _mm256_unpacklo_epi16(pair[2], pair[3]);
  const __m256i high47 = _mm256_unpackhi_epi16(pair[2], pair[3]);
  const __m256i quarter[4] = {transposed(_mm256_unpacklo_epi32(low03, low47)),
                              transposed(_mm256_unpackhi_epi32(low03, low47)),
                              transposed(_mm256_unpacklo_epi32(high03, high47)),
                              transposed(_mm256_unpackhi_epi32(high03, high47))};
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    __m256i sixteen = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) {
      const __m256i from = _mm256_broadcastsi128_si256(
          _mm_load_si128(reinterpret_cast<const __m128i*>(kQuarters.from[i][q])));
      sixteen = _mm256_or_si256(sixteen, _mm256_shuffle_epi8(quarter[q], from));
    }
    two.group[2 * i] = _mm256_srai_epi16(_mm256_slli_epi16(sixteen, 8), 8);
    two.group[2 * i + 1] = _mm256_srai_epi16(sixteen, 8);
  }
}

template <int kShift>
[[gnu::always_inline]] inline void add_words_of_planes(const uint64_t* planes, int levels,
                                                       IdctTwo& two) {
  IdctTwo high;
  words_of_planes(planes, levels - kShift, high);
#pragma GCC unroll 8
  for (int v = 0; v < 8; ++v) {
    two.group[v] = _mm256_add_epi16(two.group[v], _mm256_slli_epi16(high.group[v], kShift));
  }
}

void idct(const IdctTable& table, const std::array<const uint64_t*, 3>& sets, const int16_t* dc,
          const uint8_t* levels, int quads, uint8_t* out, ptrdiff_t stride) {
  const int16_t dc_step = table.step[0];
  IdctTwos samples(table.step.data(), stride);
  for (int q = 0; q < quads; ++q, dc += 4, out += 32) {
    if (levels[q] == 0) {
      idct_dc_quad(dc, dc_step, out, stride);
      continue;
    }
    for (int half = 0; half < 2; ++half) {
      const int at = 32 * q + 16 * half;
      IdctTwo two;
      words_of_planes(sets[0] + at, levels[q], two);
      if (levels[q] > 7) add_words_of_planes<7>(sets[1] + at, levels[q], two);
      if (levels[q] > 14) add_words_of_planes<14>(sets[2] + at, levels[q], two);
      two.group[0] = _mm256_insert_epi16(two.group[0], dc[2 * half], 0);
      two.group[0] = _mm256_insert_epi16(two.group[0], dc[2 * half + 1], 8);
      samples.add(two, out + 16 * half);
    }
  }
  samples.finish();
}

}  // namespace

IdctPlanes idct_planes_avx2() { return idct; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
IdctPlanes idct_planes_avx2() { return nullptr; }
}  // namespace headrace

#endif
