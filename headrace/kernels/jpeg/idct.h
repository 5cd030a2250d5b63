// SPDX-License-Identifier: Apache-2.0
// Quantized DCT coefficients -> 8-bit samples, a row of blocks at a time: the accurate integer
// inverse DCT of libjpeg-turbo ("islow"), bit for bit like its x86 vector code: 16-bit products and
// sums wrap and the first pass saturates, so hostile coefficients give the same samples, too. Any
// thread may call these functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace headrace {

// Coefficients of a block are stored in the order in which the inverse transform loads them:
// coefficient `natural` (row * 8 + column) is at kIdctFromNatural[natural].
extern const std::array<uint8_t, 64> kIdctFromNatural;
// The same for zigzag order, and the inverse.
extern const std::array<uint8_t, 64> kIdctFromZigzag;
alignas(64) extern const std::array<uint8_t, 64> kZigzagFromIdct;

// Quantization steps in the same order, each group of eight repeated four times, for vectors that
// span several blocks.
struct IdctTable {
  alignas(64) std::array<int16_t, 256> step{};
  // Values above 32767 wrap, as in libjpeg.
  void set(const std::array<uint16_t, 64>& natural);
};

// Layout of one component's blocks in its row: `run` adjacent blocks, then `step` coefficients from
// the first of these to the first of the next run. For contiguous blocks, run is 1 and step is 64.
struct BlockRow {
  const int16_t* first = nullptr;  // aligned to 64 bytes, as every block of the row is
  int run = 1;
  ptrdiff_t step = 64;
};

// count blocks -> 8 rows of 8 * count samples, `stride` bytes apart. May write up to a multiple of
// 4 blocks in each row; does not read past the last block.
void idct_row(const IdctTable& table, const BlockRow& blocks, int count, uint8_t* out,
              ptrdiff_t stride);

}  // namespace headrace
