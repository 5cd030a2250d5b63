// SPDX-License-Identifier: Apache-2.0
// Upsampling with AVX-512. Twin: the loops of upsample.cc.
#include "headrace/kernels/jpeg/upsample_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx512f,avx512bw,avx512vl,avx512vbmi");

namespace headrace {
namespace {

__m512i load(const uint8_t* from) { return _mm512_loadu_si512(from); }

// 3 * near + far as words, of the bytes that unpacklo (half 0) or unpackhi (half 1) takes.
__m512i weighted(__m512i near, __m512i far, int half) {
  return _mm512_maddubs_epi16(
      half ? _mm512_unpackhi_epi8(near, far) : _mm512_unpacklo_epi8(near, far),
      _mm512_set1_epi16(0x0103));
}

// The low bytes of `even` and the high bytes of `odd`.
__m512i interleaved(__m512i even, __m512i odd) {
  return _mm512_ternarylogic_epi32(_mm512_set1_epi16(0x00ff), even, odd, 0xca);
}

// Puts 128-bit lanes of two unpacked halves in order, and stores 128 bytes.
void store_halves(__m512i low, __m512i high, uint8_t* out) {
  const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
  const __m512i second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  _mm512_storeu_si512(out, _mm512_permutex2var_epi64(low, first, high));
  _mm512_storeu_si512(out + 64, _mm512_permutex2var_epi64(low, second, high));
}

// Every byte's neighbour in front of it, and after it, in two vectors that follow each other.
struct Neighbours {
  alignas(64) uint8_t before[64]{}, after[64]{};
};
constexpr Neighbours kNeighbours = [] {
  Neighbours at;
  for (int i = 0; i < 64; ++i) {
    at.before[i] = static_cast<uint8_t>(i + 63);
    at.after[i] = static_cast<uint8_t>(i + 1);
  }
  return at;
}();
__m512i neighbours_before(__m512i previous, __m512i here) {
  return _mm512_permutex2var_epi8(previous, _mm512_load_si512(kNeighbours.before), here);
}
__m512i neighbours_after(__m512i here, __m512i next) {
  return _mm512_permutex2var_epi8(here, _mm512_load_si512(kNeighbours.after), next);
}

void h2v1(const uint8_t* in, int count, uint8_t* out) {
  for (int i = 0; i < count; i += 64) {
    const __m512i here = load(in + i), before = load(in + i - 1), after = load(in + i + 1);
    __m512i doubled[2];
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const __m512i even = _mm512_add_epi16(weighted(here, before, half), _mm512_set1_epi16(1));
      const __m512i odd = _mm512_add_epi16(weighted(here, after, half), _mm512_set1_epi16(2));
      doubled[half] = interleaved(_mm512_srli_epi16(even, 2), _mm512_slli_epi16(odd, 6));
    }
    store_halves(doubled[0], doubled[1], out + 2 * i);
  }
}

// Neighbours come from registers: loads that are one byte off cost more than permutations.
void h2v2(const uint8_t* near, const uint8_t* far, int count, uint8_t* out) {
  __m512i near_previous = load(near - 64), near_here = load(near);
  __m512i far_previous = load(far - 64), far_here = load(far);
  for (int i = 0; i < count; i += 64) {
    const __m512i near_next = load(near + i + 64), far_next = load(far + i + 64);
    const __m512i near_before = neighbours_before(near_previous, near_here);
    const __m512i near_after = neighbours_after(near_here, near_next);
    const __m512i far_before = neighbours_before(far_previous, far_here);
    const __m512i far_after = neighbours_after(far_here, far_next);
    __m512i doubled[2];
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const __m512i here = weighted(near_here, far_here, half);
      const __m512i before = weighted(near_before, far_before, half);
      const __m512i after = weighted(near_after, far_after, half);
      const __m512i thrice = _mm512_add_epi16(_mm512_add_epi16(here, here), here);
      const __m512i even = _mm512_add_epi16(_mm512_add_epi16(thrice, before), _mm512_set1_epi16(8));
      const __m512i odd = _mm512_add_epi16(_mm512_add_epi16(thrice, after), _mm512_set1_epi16(7));
      doubled[half] = interleaved(_mm512_srli_epi16(even, 4), _mm512_slli_epi16(odd, 4));
    }
    store_halves(doubled[0], doubled[1], out + 2 * i);
    near_previous = near_here;
    near_here = near_next;
    far_previous = far_here;
    far_here = far_next;
  }
}

void h1v2(const uint8_t* near, const uint8_t* far, int bias, int count, uint8_t* out) {
  const __m512i round = _mm512_set1_epi16(static_cast<short>(bias));
  for (int i = 0; i < count; i += 64) {
    const __m512i a = load(near + i), b = load(far + i);
    const __m512i low = _mm512_srli_epi16(_mm512_add_epi16(weighted(a, b, 0), round), 2);
    const __m512i high = _mm512_srli_epi16(_mm512_add_epi16(weighted(a, b, 1), round), 2);
    _mm512_storeu_si512(out + i, _mm512_packus_epi16(low, high));
  }
}

constexpr UpsampleKernels kKernels{h2v1, h2v2, h1v2};

}  // namespace

const UpsampleKernels* upsample_kernels_avx512() { return &kKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const UpsampleKernels* upsample_kernels_avx512() { return nullptr; }
}  // namespace headrace

#endif
