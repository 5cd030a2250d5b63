// SPDX-License-Identifier: Apache-2.0
// Rows with AVX2. Twin: the loops of rows.cc.
#include "headrace/kernels/rows_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <array>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx2");

namespace headrace {
namespace {

// 16 bytes of plane c come from three vectors of 16: [vector][c], 0x80 where another has the byte.
struct Gather3 {
  alignas(16) std::array<std::array<std::array<uint8_t, 16>, 3>, 3> shuffle{};
};
constexpr Gather3 kGather3 = [] {
  Gather3 table;
#pragma GCC unroll 4
  for (int k = 0; k < 3; ++k) {
#pragma GCC unroll 4
    for (int c = 0; c < 3; ++c) {
      for (int i = 0; i < 16; ++i) {
        const int at = 3 * i + c - 16 * k;
        table.shuffle[k][c][i] = static_cast<uint8_t>(at >= 0 && at < 16 ? at : 0x80);
      }
    }
  }
  return table;
}();

// Two vectors of 16 bytes, 48 bytes apart, side by side: the lanes do 16 samples each.
__m256i load_lanes(const uint8_t* from) {
  return _mm256_inserti128_si256(
      _mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))),
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 48)), 1);
}

int deinterleave3(const uint8_t* in, int count, uint8_t* const out[]) {
  int i = 0;
  for (; i + 32 <= count; i += 32, in += 96) {
    const __m256i v[3] = {load_lanes(in), load_lanes(in + 16), load_lanes(in + 32)};
#pragma GCC unroll 4
    for (int c = 0; c < 3; ++c) {
      __m256i plane = _mm256_setzero_si256();
#pragma GCC unroll 4
      for (int k = 0; k < 3; ++k) {
        const __m256i shuffle = _mm256_broadcastsi128_si256(
            _mm_load_si128(reinterpret_cast<const __m128i*>(kGather3.shuffle[k][c].data())));
        plane = _mm256_or_si256(plane, _mm256_shuffle_epi8(v[k], shuffle));
      }
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out[c] + i), plane);
    }
  }
  return i;
}

int mirror(const uint8_t* in, int count, uint8_t* out) {
  const __m256i reverse = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
  int i = 0;
  for (; i + 32 <= count; i += 32) {
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + count - 32 - i));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i),
                        _mm256_permute4x64_epi64(_mm256_shuffle_epi8(v, reverse), 0x4e));
  }
  return i;
}

constexpr RowKernels kKernels{deinterleave3, mirror};

}  // namespace

const RowKernels* row_kernels_avx2() { return &kKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const RowKernels* row_kernels_avx2() { return nullptr; }
}  // namespace headrace

#endif
