// SPDX-License-Identifier: Apache-2.0
// Upsampling with AVX2. Twin: the loops of upsample.cc.
#include "headrace/kernels/jpeg/upsample_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx2");

namespace headrace {
namespace {

__m256i load(const uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
void store(uint8_t* to, __m256i v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v); }

// 3 * near + far as words, of the bytes that unpacklo (half 0) or unpackhi (half 1) takes.
__m256i weighted(__m256i near, __m256i far, int half) {
  return _mm256_maddubs_epi16(
      half ? _mm256_unpackhi_epi8(near, far) : _mm256_unpacklo_epi8(near, far),
      _mm256_set1_epi16(0x0103));
}

// The low bytes of `even` and the high bytes of `odd`.
__m256i interleaved(__m256i even, __m256i odd) {
  return _mm256_blendv_epi8(odd, even, _mm256_set1_epi16(0x00ff));
}

// Puts 128-bit lanes of two unpacked halves in order, and stores 64 bytes.
void store_halves(__m256i low, __m256i high, uint8_t* out) {
  store(out, _mm256_permute2x128_si256(low, high, 0x20));
  store(out + 32, _mm256_permute2x128_si256(low, high, 0x31));
}

void h2v1(const uint8_t* in, int count, uint8_t* out) {
  for (int i = 0; i < count; i += 32) {
    const __m256i here = load(in + i), before = load(in + i - 1), after = load(in + i + 1);
    __m256i doubled[2];
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const __m256i even = _mm256_add_epi16(weighted(here, before, half), _mm256_set1_epi16(1));
      const __m256i odd = _mm256_add_epi16(weighted(here, after, half), _mm256_set1_epi16(2));
      doubled[half] = interleaved(_mm256_srli_epi16(even, 2), _mm256_slli_epi16(odd, 6));
    }
    store_halves(doubled[0], doubled[1], out + 2 * i);
  }
}

void h2v2(const uint8_t* near, const uint8_t* far, int count, uint8_t* out) {
  for (int i = 0; i < count; i += 32) {
    const __m256i near_here = load(near + i), far_here = load(far + i);
    const __m256i near_before = load(near + i - 1), far_before = load(far + i - 1);
    const __m256i near_after = load(near + i + 1), far_after = load(far + i + 1);
    __m256i doubled[2];
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const __m256i here = weighted(near_here, far_here, half);
      const __m256i before = weighted(near_before, far_before, half);
      const __m256i after = weighted(near_after, far_after, half);
      const __m256i thrice = _mm256_add_epi16(_mm256_add_epi16(here, here), here);
      const __m256i even = _mm256_add_epi16(_mm256_add_epi16(thrice, before), _mm256_set1_epi16(8));
      const __m256i odd = _mm256_add_epi16(_mm256_add_epi16(thrice, after), _mm256_set1_epi16(7));
      doubled[half] = interleaved(_mm256_srli_epi16(even, 4), _mm256_slli_epi16(odd, 4));
    }
    store_halves(doubled[0], doubled[1], out + 2 * i);
  }
}

void h1v2(const uint8_t* near, const uint8_t* far, int bias, int count, uint8_t* out) {
  const __m256i round = _mm256_set1_epi16(static_cast<short>(bias));
  for (int i = 0; i < count; i += 32) {
    const __m256i a = load(near + i), b = load(far + i);
    const __m256i low = _mm256_srli_epi16(_mm256_add_epi16(weighted(a, b, 0), round), 2);
    const __m256i high = _mm256_srli_epi16(_mm256_add_epi16(weighted(a, b, 1), round), 2);
    store(out + i, _mm256_packus_epi16(low, high));
  }
}

constexpr UpsampleKernels kKernels{h2v1, h2v2, h1v2};

}  // namespace

const UpsampleKernels* upsample_kernels_avx2() { return &kKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const UpsampleKernels* upsample_kernels_avx2() { return nullptr; }
}  // namespace headrace

#endif
