// SPDX-License-Identifier: Apache-2.0
// The functions of idct.cc per SIMD level, and the order of a block that their cores share.
// Internal to kernels/.
//
// Note [Order of a block]
// A block is eight groups of eight words. Group 2 * p + h holds rows kIdctOrder[2p] and
// kIdctOrder[2p + 1] at the four columns kIdctOrder[4h .. 4h + 3], each column's two words side by
// side. Those two words are what a pair product of the inverse transform multiplies: (x0, x4), (x2,
// x6), (x7, x1), (x3, x5); and the sum of the last two is the pair (x3 + x7, x1 + x5) that it needs
// as well. Columns are in the same order, so that packing the first pass's results gives the second
// pass its pairs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "headrace/kernels/jpeg/idct.h"

namespace headrace {

constexpr std::array<int, 8> kIdctOrder = {0, 4, 2, 6, 7, 1, 3, 5};

// The constants of the transform, in units of 2^-13: sin and cos of multiples of pi / 16, and sums
// of them. Names as in jidctint.c.
constexpr int kF0298 = 2446, kF0390 = 3196, kF0541 = 4433, kF0765 = 6270, kF0899 = 7373,
              kF1175 = 9633, kF1501 = 12299, kF1847 = 15137, kF1961 = 16069, kF2053 = 16819,
              kF2562 = 20995, kF3072 = 25172;
constexpr int kIdctBits = 13;                      // fraction bits of these constants
constexpr int kIdctShift1 = 11, kIdctShift2 = 18;  // after both passes: extra fraction bits of a
                                                   // result
constexpr int kIdctRound1 = 1 << 10, kIdctRound2 = 1 << 17;

// Weights of a pair of words in a 32-bit sum, the first word's in the low half.
constexpr int32_t idct_pair(int first, int second) {
  return static_cast<int32_t>((static_cast<uint32_t>(first) & 0xffff) |
                              static_cast<uint32_t>(second) << 16);
}

// Note [Why weights lie in memory]
// If g++ sees their values, it builds AVX-512 constants from immediates through a general register,
// in every iteration of the loop. From memory, one instruction broadcasts them.
struct IdctWeights {
  int32_t even0 = idct_pair(1 << kIdctBits, 0), even1 = idct_pair(0, 1 << kIdctBits);
  // of (x2, x6)
  int32_t even2 = idct_pair(kF0541, kF0541 - kF1847), even3 = idct_pair(kF0541 + kF0765, kF0541);
  // of (x3 + x7, x1 + x5)
  int32_t turn3 = idct_pair(kF1175 - kF1961, kF1175), turn4 = idct_pair(kF1175, kF1175 - kF0390);
  // of (x7, x1)
  int32_t odd0 = idct_pair(kF0298 - kF0899, -kF0899), odd3 = idct_pair(-kF0899, kF1501 - kF0899);
  // of (x3, x5)
  int32_t odd1 = idct_pair(-kF2562, kF2053 - kF2562), odd2 = idct_pair(kF3072 - kF2562, -kF2562);
  int32_t round1 = kIdctRound1, round2 = kIdctRound2;
  // Detects a first row beyond 13 bits: with the limit added, one of these bits is set in its
  // words.
  int32_t limit = idct_pair(8192, 8192), beyond = 0xc000;
  int32_t sign = static_cast<int32_t>(0x80808080);
};
[[gnu::visibility("hidden")]] extern const IdctWeights kIdctWeights;

// The scalar reference: one block, in the order above. `step` is IdctTable::step, here and in the
// cores.
void idct_block(const int16_t* words, const int16_t* step, uint8_t* out, ptrdiff_t stride);

// Note [Where the first row wraps]
// If everything below a block's first row is zero, libjpeg-turbo takes a shortcut in the first pass
// that wraps where the full transform saturates. The two only differ for values beyond 13 bits,
// which no encoder produces; vector code tests for these, and then has its results replaced here.
// For `lanes` adjacent blocks: group v of block b is groups[(v * lanes + b) * 8], and the first
// pass's rows have the same layout, words[half * 4 + row / 2] with two rows of four columns.
void wrap_first_rows(const int16_t* groups, const int16_t* step, int lanes, int16_t* words);

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
IdctRow idct_row_neon();

}  // namespace headrace
