// SPDX-License-Identifier: Apache-2.0
// Writing packed rows with AVX2 and BMI2. Scalar reference: packed_blocks_pack_scalar.cc.
#include "headrace/kernels/jpeg/packed_blocks_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx2,bmi,bmi2,popcnt,lzcnt");

#include "headrace/kernels/jpeg/packed_blocks_pack_loops.h"

namespace headrace {
namespace {

struct Bits {
  static int count(uint64_t mask) { return static_cast<int>(_mm_popcnt_u64(mask)); }
  static uint64_t gather(uint64_t bits, uint64_t mask) { return _pext_u64(bits, mask); }
  static unsigned magnitudes(const int16_t* values, Magnitudes& out) {
    const __m256i low_byte = _mm256_set1_epi16(255);
    __m256i all = _mm256_setzero_si256();
    out.signs = 0;
    for (int half = 0; half < 2; ++half) {
      const auto* const from = reinterpret_cast<const __m256i*>(values) + 2 * half;
      const __m256i a = _mm256_load_si256(from), b = _mm256_load_si256(from + 1);
      const __m256i abs_a = _mm256_abs_epi16(a), abs_b = _mm256_abs_epi16(b);
      all = _mm256_or_si256(all, _mm256_or_si256(abs_a, abs_b));
      // Packing interleaves the halves of its operands; the permutation restores the order.
      const __m256i low =
          _mm256_packus_epi16(_mm256_and_si256(abs_a, low_byte), _mm256_and_si256(abs_b, low_byte));
      const __m256i high =
          _mm256_packus_epi16(_mm256_srli_epi16(abs_a, 8), _mm256_srli_epi16(abs_b, 8));
      const __m256i sign = _mm256_packs_epi16(a, b);
      _mm256_store_si256(reinterpret_cast<__m256i*>(out.low.data()) + half,
                         _mm256_permute4x64_epi64(low, 0xd8));
      _mm256_store_si256(reinterpret_cast<__m256i*>(out.high.data()) + half,
                         _mm256_permute4x64_epi64(high, 0xd8));
      const auto signs =
          static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_permute4x64_epi64(sign, 0xd8)));
      out.signs |= uint64_t{signs} << (32 * half);
    }
    __m128i any = _mm_or_si128(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
    any = _mm_or_si128(any, _mm_unpackhi_epi64(any, any));
    uint64_t four = static_cast<uint64_t>(_mm_cvtsi128_si64(any));
    four |= four >> 32;
    return static_cast<unsigned>((four | four >> 16) & 0xFFFF);
  }
  static void planes(const uint8_t* bytes, uint64_t* plane) {
    __m256i low = _mm256_load_si256(reinterpret_cast<const __m256i*>(bytes));
    __m256i high = _mm256_load_si256(reinterpret_cast<const __m256i*>(bytes) + 1);
    for (int i = 7; i >= 0; --i) {
      plane[i] = static_cast<uint32_t>(_mm256_movemask_epi8(low)) |
                 static_cast<uint64_t>(static_cast<uint32_t>(_mm256_movemask_epi8(high))) << 32;
      low = _mm256_add_epi8(low, low);
      high = _mm256_add_epi8(high, high);
    }
  }
};

// Used where pext is slow.
struct BitsWithoutPext : Bits {
  static uint64_t gather(uint64_t bits, uint64_t mask) {
    uint64_t out = 0;
    for (int i = 0; mask; mask = _blsr_u64(mask), ++i) {
      out |= uint64_t{(bits & _blsi_u64(mask)) != 0} << i;
    }
    return out;
  }
};

}  // namespace

PackGroup pack_group_avx2() { return pack_group<Bits>; }
PackGroup pack_group_slow_pext() { return pack_group<BitsWithoutPext>; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
PackGroup pack_group_avx2() { return nullptr; }
PackGroup pack_group_slow_pext() { return nullptr; }
}  // namespace headrace

#endif
