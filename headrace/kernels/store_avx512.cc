// SPDX-License-Identifier: Apache-2.0
// Stores with AVX-512 VBMI. Scalar reference: the loops of store.cc.
#include "headrace/kernels/store_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <array>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,fma,bmi2");

namespace headrace {
namespace {

__mmask16 mask16(int left) { return static_cast<__mmask16>(left >= 16 ? 0xffff : (1 << left) - 1); }
__mmask32 mask32(int left) { return left >= 32 ? ~0u : (1u << left) - 1; }
__mmask64 mask64(int left) { return left >= 64 ? ~uint64_t{0} : (uint64_t{1} << left) - 1; }

bool is_aligned(const void* to) { return (reinterpret_cast<uintptr_t>(to) & 63) == 0; }

void row_f32(const StoreTable& table, const uint8_t* in, int count, float* out, bool stream) {
  const __m512 scale = _mm512_set1_ps(table.affine.scale), mean = _mm512_set1_ps(table.affine.mean);
  const __m512 std = _mm512_set1_ps(table.affine.std);
  const __m512 reciprocal = _mm512_set1_ps(table.reciprocal);
  for (int i = 0; i < count; i += 16) {
    const __mmask16 mask = mask16(count - i);
    const __m512 x = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, in + i)));
    const __m512 d = _mm512_sub_ps(_mm512_mul_ps(x, scale), mean);
    const __m512 q = _mm512_mul_ps(d, reciprocal);
    const __m512 residual = _mm512_fnmadd_ps(q, std, d);
    const __m512 value = _mm512_fmadd_ps(residual, reciprocal, q);
    if (stream && mask == 0xffff) {
      _mm512_stream_ps(out + i, value);
    } else {
      _mm512_mask_storeu_ps(out + i, mask, value);
    }
  }
}

// Lookup among 256 words: eight registers, two levels of permutations.
void row_u16(const StoreTable& table, const uint8_t* in, int count, uint16_t* out, bool stream) {
  __m512i t[8];
  for (int k = 0; k < 8; ++k) t[k] = _mm512_load_si512(table.u16.data() + 32 * k);
  const __m512i bit6 = _mm512_set1_epi16(64), bit7 = _mm512_set1_epi16(128);
  for (int i = 0; i < count; i += 32) {
    const __mmask32 mask = mask32(count - i);
    const __m512i x = _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(mask, in + i));
    const __mmask32 above_64 = _mm512_test_epi16_mask(x, bit6);
    const __mmask32 above_128 = _mm512_test_epi16_mask(x, bit7);
    const __m512i low = _mm512_mask_blend_epi16(above_64, _mm512_permutex2var_epi16(t[0], x, t[1]),
                                                _mm512_permutex2var_epi16(t[2], x, t[3]));
    const __m512i high = _mm512_mask_blend_epi16(above_64, _mm512_permutex2var_epi16(t[4], x, t[5]),
                                                 _mm512_permutex2var_epi16(t[6], x, t[7]));
    const __m512i value = _mm512_mask_blend_epi16(above_128, low, high);
    if (stream && mask == ~__mmask32{0}) {
      _mm512_stream_si512(reinterpret_cast<__m512i*>(out + i), value);
    } else {
      _mm512_mask_storeu_epi16(out + i, mask, value);
    }
  }
}

void row_u8(const StoreTable& table, const uint8_t* in, int count, uint8_t* out) {
  __m512i t[4];
  for (int k = 0; k < 4; ++k) t[k] = _mm512_load_si512(table.u8.data() + 64 * k);
  for (int i = 0; i < count; i += 64) {
    const __mmask64 mask = mask64(count - i);
    const __m512i x = _mm512_maskz_loadu_epi8(mask, in + i);
    const __m512i low = _mm512_permutex2var_epi8(t[0], x, t[1]);
    const __m512i high = _mm512_permutex2var_epi8(t[2], x, t[3]);
    _mm512_mask_storeu_epi8(out + i, mask,
                            _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), low, high));
  }
}

int row(const StoreTable& table, const uint8_t* in, int count, void* out, bool stream) {
  stream = stream && is_aligned(out);
  switch (table.dtype) {
    case DType::kFloat32:
      if (!table.arithmetic) return 0;
      row_f32(table, in, count, static_cast<float*>(out), stream);
      return count;
    case DType::kUInt16:
    case DType::kFloat16:
    case DType::kBFloat16:
      row_u16(table, in, count, static_cast<uint16_t*>(out), stream);
      return count;
    default:
      row_u8(table, in, count, static_cast<uint8_t*>(out));
      return count;
  }
}

// Element e of the interleaved stream is element e / 3 of plane e % 3. The first permutation places
// planes 0 and 1, the second adds plane 2.
template <class Element>
struct Scatter3 {
  static constexpr int kLanes = 64 / sizeof(Element);
  alignas(64) std::array<std::array<Element, kLanes>, 3> first{}, second{};
  constexpr Scatter3() {
#pragma GCC unroll 4
    for (int k = 0; k < 3; ++k) {
      for (int j = 0; j < kLanes; ++j) {
        const int e = k * kLanes + j, pixel = e / 3, plane = e % 3;
        first[k][j] = static_cast<Element>(plane == 1 ? kLanes + pixel : pixel);
        second[k][j] = static_cast<Element>(plane == 2 ? kLanes + pixel : j);
      }
    }
  }
};
template <class Element>
constexpr Scatter3<Element> kScatter3;

template <class Element>
__m512i permute(__m512i a, __m512i index, __m512i b) {
  if constexpr (sizeof(Element) == 1) return _mm512_permutex2var_epi8(a, index, b);
  if constexpr (sizeof(Element) == 2) return _mm512_permutex2var_epi16(a, index, b);
  if constexpr (sizeof(Element) == 4) return _mm512_permutex2var_epi32(a, index, b);
}

template <class Element>
int interleave3_of(const void* const in[], int count, void* out, bool stream) {
  constexpr int kLanes = Scatter3<Element>::kLanes;
  uint8_t* to = static_cast<uint8_t*>(out);
  for (int i = 0; i < count; i += kLanes, to += 192) {
    __m512i plane[3];
#pragma GCC unroll 4
    for (int c = 0; c < 3; ++c) {
      plane[c] = _mm512_loadu_si512(static_cast<const Element*>(in[c]) + i);
    }
    const int64_t left = int64_t{3} * (count - i) * int64_t{sizeof(Element)};
#pragma GCC unroll 4
    for (int k = 0; k < 3; ++k) {
      if (left <= 64 * k) break;
      const __m512i first = _mm512_load_si512(kScatter3<Element>.first[k].data());
      const __m512i second = _mm512_load_si512(kScatter3<Element>.second[k].data());
      const __m512i two = permute<Element>(plane[0], first, plane[1]);
      const __m512i all = permute<Element>(two, second, plane[2]);
      if (stream && left >= 64 * (k + 1)) {
        _mm512_stream_si512(reinterpret_cast<__m512i*>(to + 64 * k), all);
      } else {
        _mm512_mask_storeu_epi8(to + 64 * k, mask64(static_cast<int>(left - 64 * k)), all);
      }
    }
  }
  return count;
}

int interleave3(int element_bytes, const void* const in[], int count, void* out, bool stream) {
  stream = stream && is_aligned(out);
  switch (element_bytes) {
    case 1:
      return interleave3_of<uint8_t>(in, count, out, stream);
    case 2:
      return interleave3_of<uint16_t>(in, count, out, stream);
    default:
      return interleave3_of<uint32_t>(in, count, out, stream);
  }
}

void fence() { _mm_sfence(); }

constexpr StoreKernels kKernels{row, interleave3, fence};

}  // namespace

const StoreKernels* store_kernels_avx512() { return &kKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const StoreKernels* store_kernels_avx512() { return nullptr; }
}  // namespace headrace

#endif
