// SPDX-License-Identifier: Apache-2.0
// Stores with AVX2, FMA and F16C. Scalar reference: the loops of store.cc.
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

__m256 eight_samples(const uint8_t* in) {
  return _mm256_cvtepi32_ps(
      _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(in))));
}

template <DType kDType, class Map>
int row_of(const Map& map, const uint8_t* in, int count, void* out, bool stream) {
  int i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256 value = map(eight_samples(in + i));
    if constexpr (kDType == DType::kFloat32) {
      float* const to = static_cast<float*>(out) + i;
      stream ? _mm256_stream_ps(to, value) : _mm256_storeu_ps(to, value);
    } else {
      const __m128i halves = kDType == DType::kFloat16
                                 ? _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT)
                                 : bfloat16_of(value);
      auto* const to = reinterpret_cast<__m128i*>(static_cast<uint16_t*>(out) + i);
      stream ? _mm_stream_si128(to, halves) : _mm_storeu_si128(to, halves);
    }
  }
  return i;
}

struct Fused {
  explicit Fused(const StoreTable& table)
      : slope(_mm256_set1_ps(table.slope)), offset(_mm256_set1_ps(table.offset)) {}
  __m256 operator()(__m256 x) const { return _mm256_fmadd_ps(x, slope, offset); }

  __m256 slope, offset;
};

struct Divided {
  explicit Divided(const StoreTable& table)
      : scale(_mm256_set1_ps(table.affine.scale)),
        mean(_mm256_set1_ps(table.affine.mean)),
        std(_mm256_set1_ps(table.affine.std)),
        reciprocal(_mm256_set1_ps(table.reciprocal)) {}
  __m256 operator()(__m256 x) const {
    const __m256 d = _mm256_sub_ps(_mm256_mul_ps(x, scale), mean);
    const __m256 q = _mm256_mul_ps(d, reciprocal);
    return _mm256_fmadd_ps(_mm256_fnmadd_ps(q, std, d), reciprocal, q);
  }

  __m256 scale, mean, std, reciprocal;
};

template <DType kDType>
int mapped_row(const StoreTable& table, const uint8_t* in, int count, void* out, bool stream) {
  if (table.fused) return row_of<kDType>(Fused(table), in, count, out, stream);
  return row_of<kDType>(Divided(table), in, count, out, stream);
}

int row(const StoreTable& table, const uint8_t* in, int count, void* out, bool stream) {
  if (!table.arithmetic) return 0;
  stream = stream && (reinterpret_cast<uintptr_t>(out) & 31) == 0;
  switch (table.dtype) {
    case DType::kFloat32:
      return mapped_row<DType::kFloat32>(table, in, count, out, stream);
    case DType::kFloat16:
      return mapped_row<DType::kFloat16>(table, in, count, out, stream);
    default:
      return mapped_row<DType::kBFloat16>(table, in, count, out, stream);
  }
}

// 16 bytes of each of three planes become three times 16: which bytes of a plane go to each.
template <size_t kBytes>
struct Scatter3 {
  alignas(32) uint8_t from[3][3][32]{};
  constexpr Scatter3() {
    for (size_t at = 0; at < 48; ++at) {
      const size_t element = at / kBytes, plane = element % 3, piece = at / 16;
      for (auto& bytes : from[piece]) bytes[at % 16] = bytes[at % 16 + 16] = 0x80;
      from[piece][plane][at % 16] = from[piece][plane][at % 16 + 16] =
          static_cast<uint8_t>(element / 3 * kBytes + at % kBytes);
    }
  }
};
template <size_t kBytes>
constexpr Scatter3<kBytes> kScatter3;

template <size_t kBytes>
int interleave3_of(const void* const in[], int count, void* out, bool stream) {
  constexpr int kPixels = 32 / kBytes;
  auto* to = static_cast<__m256i*>(out);
  int i = 0;
  for (; i + kPixels <= count; i += kPixels, to += 3) {
    __m256i plane[3], piece[3];
#pragma GCC unroll 3
    for (int c = 0; c < 3; ++c) {
      plane[c] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(
          static_cast<const uint8_t*>(in[c]) + size_t(i) * kBytes));
    }
#pragma GCC unroll 3
    for (int j = 0; j < 3; ++j) {
      piece[j] = _mm256_setzero_si256();
#pragma GCC unroll 3
      for (int c = 0; c < 3; ++c) {
        const __m256i from =
            _mm256_load_si256(reinterpret_cast<const __m256i*>(kScatter3<kBytes>.from[j][c]));
        piece[j] = _mm256_or_si256(piece[j], _mm256_shuffle_epi8(plane[c], from));
      }
    }
    const __m256i all[3] = {_mm256_permute2x128_si256(piece[0], piece[1], 0x20),
                            _mm256_permute2x128_si256(piece[2], piece[0], 0x30),
                            _mm256_permute2x128_si256(piece[1], piece[2], 0x31)};
#pragma GCC unroll 3
    for (int j = 0; j < 3; ++j) {
      stream ? _mm256_stream_si256(to + j, all[j]) : _mm256_storeu_si256(to + j, all[j]);
    }
  }
  return i;
}

int interleave3(int element_bytes, const void* const in[], int count, void* out, bool stream) {
  stream = stream && (reinterpret_cast<uintptr_t>(out) & 31) == 0;
  switch (element_bytes) {
    case 1:
      return interleave3_of<1>(in, count, out, stream);
    case 2:
      return interleave3_of<2>(in, count, out, stream);
    default:
      return interleave3_of<4>(in, count, out, stream);
  }
}

void fence() { _mm_sfence(); }

constexpr StoreKernels kKernels{row, interleave3, fence};

}  // namespace

const StoreKernels* store_kernels_avx2() { return &kKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const StoreKernels* store_kernels_avx2() { return nullptr; }
}  // namespace headrace

#endif
