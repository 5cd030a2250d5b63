// SPDX-License-Identifier: Apache-2.0
// Quantized DCT coefficients -> 8-bit samples, a row of blocks at a time: the accurate integer
// inverse DCT of libjpeg-turbo ("islow"), bit for bit as its x86 vector code computes it: 16-bit
// products and sums wrap and the first pass saturates, so hostile coefficients give its samples
// too. Any thread may call these.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace headrace {

// Coefficients of a block lie in the order that the inverse transform loads them: coefficient
// `natural` (row * 8 + column) stands at kIdctFromNatural[natural].
extern const std::array<uint8_t, 64> kIdctFromNatural;
// The same of the zigzag order, and back.
extern const std::array<uint8_t, 64> kIdctFromZigzag;
alignas(64) extern const std::array<uint8_t, 64> kZigzagFromIdct;

// Quantization steps in the same order, every eight of them four times over: for vectors of as many
// blocks.
struct IdctTable {
  alignas(64) std::array<int16_t, 256> step{};
  // Values above 32767 wrap, as in libjpeg.
  void set(const std::array<uint16_t, 64>& natural);
};

// Blocks of one component as they follow each other in its row: `run` neighbors, then `step`
// coefficients from the first of these to the first of the next. Blocks that simply lie side by
// side have run 1 and step 64.
struct BlockRow {
  const int16_t* first = nullptr;  // aligned to 64 bytes, as every block of the row is
  int run = 1;
  ptrdiff_t step = 64;
};

// count blocks -> 8 rows of 8 * count samples, `stride` bytes apart. May write up to a multiple of
// 4 blocks in each row; reads no block beyond.
void idct_row(const IdctTable& table, const BlockRow& blocks, int count, uint8_t* out,
              ptrdiff_t stride);

}  // namespace headrace
