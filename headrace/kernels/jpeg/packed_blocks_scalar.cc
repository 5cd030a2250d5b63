// SPDX-License-Identifier: Apache-2.0
// Reading packed rows with what every CPU has. The reference for the other levels.
#include "headrace/kernels/jpeg/packed_blocks_levels.h"
#include "headrace/kernels/jpeg/packed_blocks_unpack.h"

namespace headrace {
namespace {

struct Bits {
  static int count(uint64_t mask) { return __builtin_popcountll(mask); }
  static uint64_t low(uint64_t bits, int count) { return bits & ((uint64_t{1} << count) - 1); }
  // The bits from below, each to the place of the next one in the mask.
  static uint64_t spread(uint64_t bits, uint64_t mask) {
    uint64_t out = 0;
    for (; mask; mask &= mask - 1, bits >>= 1) {
      if (bits & 1) out |= mask & -mask;
    }
    return out;
  }
};

}  // namespace

UnpackQuads unpack_quads_scalar() { return unpack_quads<Bits>; }

}  // namespace headrace
