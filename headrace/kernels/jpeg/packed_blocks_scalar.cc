// SPDX-License-Identifier: Apache-2.0
// Reading packed rows on any CPU. The reference for the other SIMD levels, and the code for NEON,
// which has no instruction that spreads bits.
#include "headrace/kernels/jpeg/packed_blocks_levels.h"
// These need the definitions above.
#include "headrace/kernels/jpeg/packed_blocks_unpack_loops.h"

namespace headrace {
namespace {

// For each 8-bit mask, and each number with as many bits as the mask has ones: the number's bits,
// deposited at the mask's set positions.
struct SpreadBytes {
  static constexpr int kNumbers = 6561;  // 3^8: the sum of two to the number of ones, over all
                                         // masks
  uint16_t first[256]{};
  uint8_t ones[256]{}, spread[kNumbers]{};
};
constexpr SpreadBytes kSpreadBytes = [] {
  SpreadBytes bytes;
  int next = 0;
  for (int mask = 0; mask < 256; ++mask) {
    for (int bit = 0; bit < 8; ++bit) bytes.ones[mask] += mask >> bit & 1;
    bytes.first[mask] = static_cast<uint16_t>(next);
    for (int number = 0; number < 1 << bytes.ones[mask]; ++number, ++next) {
      int left = number;
      for (int bit = 0; bit < 8; ++bit) {
        if (!(mask >> bit & 1)) continue;
        bytes.spread[next] |= static_cast<uint8_t>((left & 1) << bit);
        left >>= 1;
      }
    }
  }
  return bytes;
}();

struct Bits {
  static int count(uint64_t mask) { return __builtin_popcountll(mask); }
  static uint64_t low(uint64_t bits, int count) { return bits & ((uint64_t{1} << count) - 1); }
  // Deposits the low bits at the mask's set positions, one byte of the mask at a time.
  static uint64_t spread(uint64_t bits, uint64_t mask) {
    uint64_t out = 0;
    for (int place = 0; mask != 0; place += 8, mask >>= 8) {
      const int byte = static_cast<int>(mask & 255), ones = kSpreadBytes.ones[byte];
      const uint64_t number = low(bits, ones);
      out |= uint64_t{kSpreadBytes.spread[kSpreadBytes.first[byte] + number]} << place;
      bits >>= ones;
    }
    return out;
  }
};

}  // namespace

UnpackQuads unpack_quads_scalar() { return unpack_quads<Bits>; }

}  // namespace headrace
