// SPDX-License-Identifier: Apache-2.0
// Stores with AVX2, FMA and F16C. Twin: the loops of store.cc.
#include "headrace/kernels/store_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx2,fma,f16c");

namespace headrace {
namespace {

__m128i bfloat16_of(__m256 value) {
  const __m256i bits = _mm256_castps_si256(value);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
  const __m256i kept = _mm256_srli_epi32(_mm256_add_epi32(bits, bias), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(kept), _mm256_extracti128_si256(kept, 1));
}

int row(const StoreTable& table, const uint8_t* in, int count, void* out, bool stream) {
  if (!table.arithmetic) return 0;
  stream = stream && (reinterpret_cast<uintptr_t>(out) & 31) == 0;
  const __m256 scale = _mm256_set1_ps(table.affine.scale), mean = _mm256_set1_ps(table.affine.mean);
  const __m256 std = _mm256_set1_ps(table.affine.std);
  const __m256 reciprocal = _mm256_set1_ps(table.reciprocal);
  int i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(in + i));
    const __m256 x = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
    const __m256 d = _mm256_sub_ps(_mm256_mul_ps(x, scale), mean);
    const __m256 q = _mm256_mul_ps(d, reciprocal);
    const __m256 value = _mm256_fmadd_ps(_mm256_fnmadd_ps(q, std, d), reciprocal, q);
    if (table.dtype == DType::kFloat32) {
      float* const to = static_cast<float*>(out) + i;
      stream ? _mm256_stream_ps(to, value) : _mm256_storeu_ps(to, value);
    } else {
      const __m128i halves = table.dtype == DType::kFloat16
                                 ? _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT)
                                 : bfloat16_of(value);
      __m128i* const to = reinterpret_cast<__m128i*>(static_cast<uint16_t*>(out) + i);
      stream ? _mm_stream_si128(to, halves) : _mm_storeu_si128(to, halves);
    }
  }
  return i;
}

void fence() { _mm_sfence(); }

constexpr StoreKernels kKernels{row, nullptr, fence};

}  // namespace

const StoreKernels* store_kernels_avx2() { return &kKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const StoreKernels* store_kernels_avx2() { return nullptr; }
}  // namespace headrace

#endif
