// SPDX-License-Identifier: Apache-2.0
// Planes -> samples with NEON. Scalar reference: coefficients_of_planes() and idct_block().
//
// A table look-up (TBL) of 64 bytes takes byte j of all eight planes together, three exchanges
// transpose these 64 bits, and a second look-up puts a block's 64 coefficients into the order of
// idct_neon.cc, which does the transform.
#include "headrace/kernels/jpeg/idct_levels.h"
#include "headrace/kernels/jpeg/packed_blocks.h"
#include "headrace/kernels/jpeg/packed_blocks_levels.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#include <algorithm>

namespace headrace {
namespace {

constexpr int kPlaneBytes = 8;

// Shuffles that start at 8 * (kBits - n): the bytes of the n planes in use, then of the others.
struct Counting {
  uint8_t bytes[kPlaneBytes * (BlockPlanes::kBits + 8)]{};
};
constexpr Counting kCounting = [] {
  Counting counting;
  for (int i = 0; i < kPlaneBytes * BlockPlanes::kBits; ++i) counting.bytes[i] = 0xff;
  return counting;
}();

// Swaps the bits under `mask` with those `distance` higher.
template <int kDistance>
uint64x2_t swap_bits(uint64x2_t x, uint64_t mask) {
  const uint64x2_t t = vandq_u64(veorq_u64(x, vshrq_n_u64(x, kDistance)), vdupq_n_u64(mask));
  return veorq_u64(x, veorq_u64(t, vshlq_n_u64(t, kDistance)));
}

// Eight bytes of eight planes each -> eight signed bytes, twice.
int8x16_t transposed(uint8x16_t bytes) {
  uint64x2_t x = vreinterpretq_u64_u8(bytes);
  x = swap_bits<7>(x, 0x00AA00AA00AA00AA);
  x = swap_bits<14>(x, 0x0000CCCC0000CCCC);
  x = swap_bits<28>(x, 0x00000000F0F0F0F0);
  const int8x16_t made = vreinterpretq_s8_u64(x), negative = vshrq_n_s8(made, 7);
  return vsubq_s8(veorq_s8(vandq_s8(made, vdupq_n_s8(127)), negative), negative);
}

// Adds one set of planes' part of a block's `count` coefficients to `words`, which are in the order
// of kIdctFromZigzag.
template <int kDepth>
void add_set(const uint64_t* planes, int count, int16_t* words) {
  const auto* const from = reinterpret_cast<const uint8_t*>(planes);
  const uint8_t* const counting = kCounting.bytes + kPlaneBytes * (BlockPlanes::kBits - count);
  uint8x16x4_t all;
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    all.val[i] = vandq_u8(vld1q_u8(from + 16 * i), vld1q_u8(counting + 16 * i));
  }
  all.val[3] = vcombine_u8(vget_low_u8(all.val[3]), vld1_u8(from + 56));  // signs are always used
  constexpr uint8x16_t kFirst{0, 8, 16, 24, 32, 40, 48, 56, 1, 9, 17, 25, 33, 41, 49, 57};
  int8x16x4_t zigzag;
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const uint8x16_t index = vaddq_u8(kFirst, vdupq_n_u8(static_cast<uint8_t>(2 * i)));
    zigzag.val[i] = transposed(vqtbl4q_u8(all, index));
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const int8x16_t placed = vqtbl4q_s8(zigzag, vld1q_u8(kZigzagFromIdct.data() + 16 * i));
    int16_t* const to = words + 16 * i;
    const int16x8_t low = vmovl_s8(vget_low_s8(placed)), high = vmovl_high_s8(placed);
    if constexpr (kDepth == 0) {
      vst1q_s16(to, low);
      vst1q_s16(to + 8, high);
    } else {
      constexpr int kUp = kDepth * BlockPlanes::kBits;
      vst1q_s16(to, vaddq_s16(vld1q_s16(to), vshlq_n_s16(low, kUp)));
      vst1q_s16(to + 8, vaddq_s16(vld1q_s16(to + 8), vshlq_n_s16(high, kUp)));
    }
  }
}

void idct(const IdctTable& table, const std::array<const uint64_t*, 3>& sets, const int16_t* dc,
          const uint8_t* levels, int quads, uint8_t* out, ptrdiff_t stride) {
  constexpr int kBits = BlockPlanes::kBits;
  const IdctRow idct_row = idct_row_neon();
  alignas(64) int16_t words[kQuadBlocks * 64];
  for (int quad = 0; quad < quads; ++quad, out += 8 * kQuadBlocks) {
    const int left = levels[quad];
    for (int b = 0; b < kQuadBlocks; ++b) {
      const ptrdiff_t block = ptrdiff_t{quad} * kQuadBlocks + b, planes = 8 * block;
      int16_t* const to = words + 64 * b;
      add_set<0>(sets[0] + planes, std::min(left, kBits), to);
      if (left > kBits) add_set<1>(sets[1] + planes, std::min(left - kBits, kBits), to);
      if (left > 2 * kBits) add_set<2>(sets[2] + planes, left - 2 * kBits, to);
      to[0] = dc[block];  // position in both orders
    }
    idct_row(table, {words, 1, 64}, kQuadBlocks, out, stride);
  }
}

}  // namespace

IdctPlanes idct_planes_neon() { return idct; }

}  // namespace headrace

#else

namespace headrace {
IdctPlanes idct_planes_neon() { return nullptr; }
}  // namespace headrace

#endif
