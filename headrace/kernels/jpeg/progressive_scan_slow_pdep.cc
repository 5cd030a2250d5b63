// SPDX-License-Identifier: Apache-2.0
// Bands of AC coefficients with BMI2, for CPUs whose pdep is slow. Reference: progressive_scan.cc.
#include "headrace/kernels/jpeg/progressive_scan_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "headrace/kernels/jpeg/packed_blocks_ranks.h"
#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx2,bmi,bmi2,popcnt,lzcnt");

namespace headrace {
namespace {

// By byte shuffles, 16 bits of the mask at a time, without data-dependent branches.
inline uint64_t deposited(uint64_t bits, uint64_t mask) {
  const __m128i bit = _mm_set1_epi64x(static_cast<int64_t>(0x8040201008040201));
  const __m128i eights = _mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
  uint64_t out = 0;
#pragma GCC unroll 4
  for (int at = 0; at < 64; at += 16) {
    const uint64_t low = mask >> at & 255, high = mask >> at >> 8 & 255;
    const __m128i bytes = _mm_shuffle_epi8(_mm_cvtsi64_si128(static_cast<int64_t>(bits)), eights);
    const __m128i set = _mm_cmpeq_epi8(_mm_and_si128(bytes, bit), bit);
    const __m128i places = _mm_add_epi8(
        _mm_load_si128(reinterpret_cast<const __m128i*>(kRanks.with_count[low])),
        _mm_slli_si128(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(kRanks.of[high])), 8));
    out |= uint64_t{static_cast<uint16_t>(_mm_movemask_epi8(_mm_shuffle_epi8(set, places)))} << at;
    bits >>= _mm_popcnt_u64(low) + _mm_popcnt_u64(high);
  }
  return out;
}

// By an 8-bit mask: the positions of its set bits.
constexpr auto kPlacesOfOnes = [] {
  std::array<std::array<uint8_t, 8>, 256> table{};
  for (size_t mask = 0; mask < 256; ++mask) {
    size_t ones = 0;
    for (uint8_t place = 0; place < 8; ++place) {
      if (mask >> place & 1) table[mask][ones++] = place;
    }
  }
  return table;
}();

// A list, so that a symbol costs one dependent load.
class Ones {
 public:
  explicit Ones(uint64_t mask) {
    uint8_t* to = places_.data();
#pragma GCC unroll 8
    for (uint64_t first = 0; first < 64; first += 8) {
      const uint64_t eight = mask >> first & 255;
      uint64_t places;
      std::memcpy(&places, kPlacesOfOnes[eight].data(), 8);
      places += first * 0x0101010101010101;
      std::memcpy(to, &places, 8);
      to += _mm_popcnt_u64(eight);
    }
    std::memset(to, kNone, 16);
  }
  uint64_t take(uint64_t bit) {
    next_ += static_cast<uint64_t>(std::countr_zero(bit));
    const uint64_t place = places_[next_++];
    return uint64_t{place != kNone} << (place & 63);
  }

 private:
  static constexpr uint8_t kNone = 64;
  std::array<uint8_t, 64 + 16> places_;
  uint64_t next_ = 0;
};

}  // namespace
}  // namespace headrace

// These need the definitions above.
#include "headrace/kernels/jpeg/progressive_change_loops.h"
#include "headrace/kernels/jpeg/progressive_scan_loops.h"

namespace headrace {

const BandKernels* band_kernels_slow_pdep() { return &kBandKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const BandKernels* band_kernels_slow_pdep() { return nullptr; }
}  // namespace headrace

#endif
