// SPDX-License-Identifier: Apache-2.0
// What each SIMD level implements for idct.cc, and the order of a block that their cores share.
// Internal to kernels/.
//
// Note [Order of a block]
// A block is eight groups of eight words. Group 2 * p + h holds rows kIdctOrder[2p] and
// kIdctOrder[2p + 1] at the four columns kIdctOrder[4h .. 4h + 3], each column's two words side by
// side. Those two words are what a pair product of the inverse transform multiplies: (x0, x4),
// (x2, x6), (x7, x1), (x3, x5); and the sum of the last two is the pair (x3 + x7, x1 + x5) that it
// needs as well. Columns lie in the same order, so that packing the first pass's results gives the
// second pass its pairs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "headrace/kernels/idct.h"

namespace headrace {

constexpr std::array<int, 8> kIdctOrder = {0, 4, 2, 6, 7, 1, 3, 5};

// The constants of the transform, in 2^-13: sin and cos of multiples of pi / 16, and sums of them
// (jidctint.c, whose names these are).
constexpr int kF0298 = 2446, kF0390 = 3196, kF0541 = 4433, kF0765 = 6270, kF0899 = 7373,
              kF1175 = 9633, kF1501 = 12299, kF1847 = 15137, kF1961 = 16069, kF2053 = 16819,
              kF2562 = 20995, kF3072 = 25172;
constexpr int kIdctBits = 13;                      // of these constants' fractions
constexpr int kIdctShift1 = 11, kIdctShift2 = 18;  // after the passes: a result's surplus bits
constexpr int kIdctRound1 = 1 << 10, kIdctRound2 = 1 << 17;

// The scalar twin: one block, in the order above.
void idct_block(const int16_t* words, const int16_t* step, uint8_t* out, ptrdiff_t stride);

// Yields the blocks of a row one by one.
class BlockWalk {
 public:
  explicit BlockWalk(const BlockRow& blocks) : next_(blocks.first), left_(blocks.run) {
    run_ = blocks.run;
    skip_ = blocks.step - ptrdiff_t{64} * (blocks.run - 1);
  }
  const int16_t* next() {
    const int16_t* const block = next_;
    next_ += 64;
    if (--left_ == 0) {
      next_ += skip_ - 64;
      left_ = run_;
    }
    return block;
  }

 private:
  const int16_t* next_;
  int left_, run_;
  ptrdiff_t skip_;  // from a run's last block to the next run's first
};

using IdctRow = void (*)(const IdctTable& table, const BlockRow& blocks, int count, uint8_t* out,
                         ptrdiff_t stride);
// Null where the architecture has no such level.
IdctRow idct_row_avx2();
IdctRow idct_row_avx512();

}  // namespace headrace
