// SPDX-License-Identifier: Apache-2.0
// Writes packed rows on any CPU. The reference for the other SIMD levels.
#include "headrace/kernels/jpeg/packed_blocks_levels.h"
// These need the definitions above.
#include "headrace/kernels/jpeg/packed_blocks_pack_loops.h"

namespace headrace {
namespace {

inline uint64_t transposed_bits(uint64_t x) {
  uint64_t t = (x ^ (x >> 7)) & 0x00AA00AA00AA00AA;
  x ^= t ^ (t << 7);
  t = (x ^ (x >> 14)) & 0x0000CCCC0000CCCC;
  x ^= t ^ (t << 14);
  t = (x ^ (x >> 28)) & 0x00000000F0F0F0F0;
  return x ^ t ^ (t << 28);
}

struct Bits {
  static int count(uint64_t mask) { return __builtin_popcountll(mask); }
  // Gathers the bits selected by the mask.
  static uint64_t gather(uint64_t bits, uint64_t mask) {
    uint64_t out = 0;
    for (uint64_t at = 1; mask; mask &= mask - 1, at <<= 1) {
      if (bits & mask & -mask) out |= at;
    }
    return out;
  }
  // Returns the OR of all magnitudes.
  static unsigned magnitudes(const int16_t* values, Magnitudes& out) {
    unsigned all = 0;
    out.signs = 0;
    for (int k = 0; k < 64; ++k) {
      const int sign = values[k] >> 15;
      const auto magnitude = static_cast<unsigned>((values[k] ^ sign) - sign);
      out.low[k] = static_cast<uint8_t>(magnitude);
      out.high[k] = static_cast<uint8_t>(magnitude >> 8);
      all |= magnitude;
      out.signs |= static_cast<uint64_t>(sign & 1) << k;
    }
    return all;
  }
  // Eight planes from 64 bytes.
  static void planes(const uint8_t* bytes, uint64_t* plane) {
    for (int g = 0; g < 8; ++g) {
      uint64_t eight;
      __builtin_memcpy(&eight, bytes + 8 * g, 8);
      eight = transposed_bits(eight);
      for (int i = 0; i < 8; ++i) plane[i] |= (eight >> (8 * i) & 0xFF) << (8 * g);
    }
  }
};

}  // namespace

PackGroup pack_group_scalar() { return pack_group<Bits>; }

}  // namespace headrace
