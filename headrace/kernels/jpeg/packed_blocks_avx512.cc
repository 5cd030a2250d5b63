// SPDX-License-Identifier: Apache-2.0
// Planes -> samples with AVX-512 and GFNI. Reference: coefficients_of_planes() and idct_block().
#include "headrace/kernels/jpeg/idct_core_avx512.h"
#include "headrace/kernels/jpeg/packed_blocks_levels.h"
#include "headrace/kernels/jpeg/packed_blocks_order.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni,gfni");

namespace headrace {
namespace {

// Byte g of plane p goes to byte 7 - p of the g-th group of eight. gf2p8affine treats these as the
// columns of a bit matrix, so it transposes them.
struct alignas(64) PlaneOrder {
  uint8_t from[64]{};
};
constexpr PlaneOrder kPlaneOrder = [] {
  PlaneOrder order;
  for (int g = 0; g < 8; ++g) {
    for (int p = 0; p < 8; ++p) order.from[8 * g + p] = static_cast<uint8_t>(8 * (7 - p) + g);
  }
  return order;
}();

// In that order, the bytes of the planes that a quad with this many levels uses.
constexpr std::array<uint64_t, 8> kUsedBytes = [] {
  std::array<uint64_t, 8> used{};
  for (int levels = 0; levels < 8; ++levels) {
    used[levels] = (1u | (0xff00u >> levels & 0xff)) * uint64_t{0x0101010101010101};
  }
  return used;
}();

// The used planes of a block's eight -> signed bytes in the order of kZigzagOfByte.
[[gnu::always_inline]] inline __m512i bytes_of_planes(const uint64_t* planes, __mmask64 used) {
  const __m512i by_eight = _mm512_maskz_permutexvar_epi8(used, _mm512_load_si512(kPlaneOrder.from),
                                                         _mm512_load_si512(planes));
  const __m512i unit = _mm512_set1_epi64(static_cast<int64_t>(0x8040201008040201));
  const __m512i bytes = _mm512_gf2p8affine_epi64_epi8(unit, by_eight, 0);
  // A negative one is 128 plus its magnitude.
  const __m512i value =
      _mm512_mask_sub_epi8(bytes, _mm512_movepi8_mask(bytes), _mm512_set1_epi8(-128), bytes);
  return _mm512_permutexvar_epi8(_mm512_load_si512(kZigzagOfByte.zigzag.data()), value);
}

// One set of planes of four blocks -> words in the order of the inverse transform.
[[gnu::always_inline]] inline void words_of_planes(const uint64_t* planes, int levels,
                                                   IdctQuad& quad) {
  const __mmask64 used = kUsedBytes[levels < 7 ? levels : 7];
  const __m512i a = bytes_of_planes(planes, used), b = bytes_of_planes(planes + 8, used);
  const __m512i c = bytes_of_planes(planes + 16, used), d = bytes_of_planes(planes + 24, used);
  const __m512i ab0 = _mm512_shuffle_i32x4(a, b, 0x44), ab1 = _mm512_shuffle_i32x4(a, b, 0xee);
  const __m512i cd0 = _mm512_shuffle_i32x4(c, d, 0x44), cd1 = _mm512_shuffle_i32x4(c, d, 0xee);
  const __m512i sixteen[4] = {
      _mm512_shuffle_i32x4(ab0, cd0, 0x88), _mm512_shuffle_i32x4(ab0, cd0, 0xdd),
      _mm512_shuffle_i32x4(ab1, cd1, 0x88), _mm512_shuffle_i32x4(ab1, cd1, 0xdd)};
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    quad.group[2 * i] = _mm512_srai_epi16(_mm512_slli_epi16(sixteen[i], 8), 8);
    quad.group[2 * i + 1] = _mm512_srai_epi16(sixteen[i], 8);
  }
}

template <int kShift>
[[gnu::always_inline]] inline void add_words_of_planes(const uint64_t* planes, int levels,
                                                       IdctQuad& quad) {
  IdctQuad high;
  words_of_planes(planes, levels - kShift, high);
#pragma GCC unroll 8
  for (int v = 0; v < 8; ++v) {
    quad.group[v] = _mm512_add_epi16(quad.group[v], _mm512_slli_epi16(high.group[v], kShift));
  }
}

void idct(const IdctTable& table, const std::array<const uint64_t*, 3>& sets, const int16_t* dc,
          const uint8_t* levels, int quads, uint8_t* out, ptrdiff_t stride) {
  const int16_t dc_step = table.step[0];
  IdctQuads samples(table.step.data(), stride);
  const __m512i first_words = _mm512_set_epi64(0, 3, 0, 2, 0, 1, 0, 0);
  for (int q = 0; q < quads; ++q, dc += 4, out += 32) {
    if (levels[q] == 0) {
      idct_dc_quad(dc, dc_step, out, stride);
      continue;
    }
    IdctQuad quad;
    words_of_planes(sets[0] + 32 * q, levels[q], quad);
    if (levels[q] > 7) add_words_of_planes<7>(sets[1] + 32 * q, levels[q], quad);
    if (levels[q] > 14) add_words_of_planes<14>(sets[2] + 32 * q, levels[q], quad);
    const __m128i four = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(dc));
    quad.group[0] = _mm512_mask_permutexvar_epi16(quad.group[0], 0x01010101, first_words,
                                                  _mm512_castsi128_si512(four));
    samples.add(quad, out);
  }
  samples.finish();
}

}  // namespace

IdctPlanes idct_planes_avx512() { return idct; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
IdctPlanes idct_planes_avx512() { return nullptr; }
}  // namespace headrace

#endif
