// SPDX-License-Identifier: Apache-2.0
// Bands of AC coefficients with BMI2, and AVX-512 for the changes of a block's masks. Scalar
// reference: progressive_scan.cc.
#include "headrace/kernels/jpeg/progressive_scan_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx512f,avx512bw,avx512vl,avx512bitalg,bmi,bmi2,popcnt,lzcnt");

namespace headrace {
namespace {

inline uint64_t deposited(uint64_t bits, uint64_t mask) { return _pdep_u64(bits, mask); }

// A mask reordered to the block's coefficient order.
inline uint64_t in_place(uint64_t mask, __m512i zigzag) {
  return _cvtmask64_u64(
      _mm512_bitshuffle_epi64_mask(_mm512_set1_epi64(static_cast<int64_t>(mask)), zigzag));
}

inline void change(int16_t* block, uint64_t corrected, uint64_t begun, uint64_t negative, int by) {
  const __m512i zigzag = _mm512_load_si512(kZigzagFromIdct.data());
  const uint64_t changed = in_place(corrected | begun, zigzag);
  const uint64_t minus = in_place(negative, zigzag);  // of a block that is in progress
  const __m512i step = _mm512_set1_epi16(static_cast<int16_t>(by));
  for (int half = 0; half < 2; ++half) {
    const auto here = static_cast<__mmask32>(changed >> (32 * half));
    const __m512i value = _mm512_load_si512(block + 32 * half);
    const auto down = static_cast<__mmask32>(_mm512_movepi16_mask(value) |
                                             static_cast<__mmask32>(minus >> (32 * half)));
    __m512i made = _mm512_mask_add_epi16(value, here & ~down, value, step);
    made = _mm512_mask_sub_epi16(made, here & down, value, step);
    _mm512_store_si512(block + 32 * half, made);
  }
}

}  // namespace
}  // namespace headrace

// These need the definitions above.
#include "headrace/kernels/jpeg/progressive_ones_loops.h"
#include "headrace/kernels/jpeg/progressive_scan_loops.h"

namespace headrace {

const BandKernels* band_kernels_avx512() { return &kBandKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const BandKernels* band_kernels_avx512() { return nullptr; }
}  // namespace headrace

#endif
