// SPDX-License-Identifier: Apache-2.0
// Reads packed rows with BMI2, which spreads bits over a mask in one instruction: for the levels
// avx2 and avx512. Vectorization is disabled, because g++ would combine pairs of planes. Scalar
// reference: packed_blocks_scalar.cc.
#include "headrace/kernels/jpeg/packed_blocks_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("bmi,bmi2,popcnt,lzcnt");

#include "headrace/kernels/jpeg/packed_blocks_unpack_loops.h"

namespace headrace {
namespace {

struct Bits {
  static int count(uint64_t mask) { return static_cast<int>(_mm_popcnt_u64(mask)); }
  static uint64_t low(uint64_t bits, int count) { return _bzhi_u64(bits, count); }
  static uint64_t spread(uint64_t bits, uint64_t mask) { return _pdep_u64(bits, mask); }
};

}  // namespace

UnpackQuads unpack_quads_bmi2() { return unpack_quads<Bits>; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
UnpackQuads unpack_quads_bmi2() { return nullptr; }
}  // namespace headrace

#endif
