// SPDX-License-Identifier: Apache-2.0
// Rows with AVX-512 VBMI. Twin: the loops of rows.cc.
#include "headrace/kernels/rows_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <array>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx512f,avx512bw,avx512vl,avx512vbmi");

namespace headrace {
namespace {

// Byte i of plane c is byte 3 * i + c of three vectors. The first permutation takes what lies in
// the first two; the second puts the rest, from the third, in place.
struct Gather3 {
  alignas(64) std::array<std::array<uint8_t, 64>, 3> first{}, second{};
};
constexpr Gather3 kGather3 = [] {
  Gather3 table;
#pragma GCC unroll 4
  for (int c = 0; c < 3; ++c) {
    for (int i = 0; i < 64; ++i) {
      const int at = 3 * i + c;
      table.first[c][i] = static_cast<uint8_t>(at < 128 ? at : 0);
      table.second[c][i] = static_cast<uint8_t>(at < 128 ? i : at - 128 + 64);
    }
  }
  return table;
}();

int deinterleave3(const uint8_t* in, int count, uint8_t* const out[]) {
  __m512i first[3], second[3];
#pragma GCC unroll 4
  for (int c = 0; c < 3; ++c) {
    first[c] = _mm512_load_si512(kGather3.first[c].data());
    second[c] = _mm512_load_si512(kGather3.second[c].data());
  }
  for (int i = 0; i < count; i += 64, in += 192) {
    const int left = 3 * (count - i);  // bytes; a masked load touches no other
    __m512i v[3];
#pragma GCC unroll 4
    for (int k = 0; k < 3; ++k) {
      const int bytes = left - 64 * k;
      const __mmask64 mask = bytes >= 64 ? ~uint64_t{0}
                             : bytes > 0 ? ~uint64_t{0} >> (64 - bytes)
                                         : 0;
      v[k] = _mm512_maskz_loadu_epi8(mask, in + 64 * k);
    }
#pragma GCC unroll 4
    for (int c = 0; c < 3; ++c) {
      const __m512i low = _mm512_permutex2var_epi8(v[0], first[c], v[1]);
      _mm512_storeu_si512(out[c] + i, _mm512_permutex2var_epi8(low, second[c], v[2]));
    }
  }
  return count;
}

int mirror(const uint8_t* in, int count, uint8_t* out) {
  alignas(64) std::array<uint8_t, 64> order;
  for (int i = 0; i < 64; ++i) order[i] = static_cast<uint8_t>(63 - i);
  const __m512i index = _mm512_load_si512(order.data());
  int i = 0;
  for (; i + 64 <= count; i += 64) {
    const __m512i v = _mm512_loadu_si512(in + count - 64 - i);
    _mm512_storeu_si512(out + i, _mm512_permutexvar_epi8(index, v));
  }
  return i;
}

constexpr RowKernels kKernels{deinterleave3, mirror};

}  // namespace

const RowKernels* row_kernels_avx512() { return &kKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const RowKernels* row_kernels_avx512() { return nullptr; }
}  // namespace headrace

#endif
