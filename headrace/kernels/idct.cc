// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/idct.h"

#include <algorithm>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/idct_levels.h"

namespace headrace {
namespace {

// Arithmetic of 16 and 32 bits that wraps, as vector instructions do.
int16_t word(int value) { return static_cast<int16_t>(static_cast<uint16_t>(value)); }
int32_t dword(int64_t value) { return static_cast<int32_t>(static_cast<uint32_t>(value)); }
int16_t saturated(int value) { return static_cast<int16_t>(std::clamp(value, -32768, 32767)); }

// One dimension, before the final shift.
void transform(const int16_t x[8], int round, int32_t out[8]) {
  // 64-bit sums, cut to 32 bits at the end, are 32-bit sums that wrap.
  const int64_t even0 = int64_t{word(x[0] + x[4])} * (1 << kIdctBits) + round;
  const int64_t even1 = int64_t{word(x[0] - x[4])} * (1 << kIdctBits) + round;
  const int64_t even2 = x[2] * kF0541 + x[6] * (kF0541 - kF1847);
  const int64_t even3 = x[2] * (kF0541 + kF0765) + x[6] * kF0541;
  const int z3 = word(x[3] + x[7]), z4 = word(x[1] + x[5]);
  const int64_t turn3 = z3 * (kF1175 - kF1961) + z4 * kF1175;
  const int64_t turn4 = z3 * kF1175 + z4 * (kF1175 - kF0390);
  const int64_t odd0 = x[7] * (kF0298 - kF0899) + x[1] * -kF0899 + turn3;
  const int64_t odd1 = x[5] * (kF2053 - kF2562) + x[3] * -kF2562 + turn4;
  const int64_t odd2 = x[3] * (kF3072 - kF2562) + x[5] * -kF2562 + turn3;
  const int64_t odd3 = x[1] * (kF1501 - kF0899) + x[7] * -kF0899 + turn4;
  out[0] = dword(even0 + even3 + odd3);
  out[7] = dword(even0 + even3 - odd3);
  out[1] = dword(even1 + even2 + odd2);
  out[6] = dword(even1 + even2 - odd2);
  out[2] = dword(even1 - even2 + odd1);
  out[5] = dword(even1 - even2 - odd1);
  out[3] = dword(even0 - even3 + odd0);
  out[4] = dword(even0 - even3 - odd0);
}

void idct_row_scalar(const IdctTable& table, const BlockRow& blocks, int count, uint8_t* out,
                     ptrdiff_t stride) {
  BlockWalk walk(blocks);
  for (int i = 0; i < count; ++i, out += 8) {
    idct_block(walk.next(), table.step.data(), out, stride);
  }
}

constexpr std::array<uint8_t, 64> idct_from_natural() {
  std::array<uint8_t, 8> place{};  // of a row or column in kIdctOrder
  for (uint8_t i = 0; i < 8; ++i) place[kIdctOrder[i]] = i;
  std::array<uint8_t, 64> at{};
  for (int row = 0; row < 8; ++row) {
    for (int column = 0; column < 8; ++column) {
      const int pair = place[row] / 2, half = place[column] / 4;
      at[row * 8 + column] =
          static_cast<uint8_t>((2 * pair + half) * 8 + place[column] % 4 * 2 + place[row] % 2);
    }
  }
  return at;
}

}  // namespace

constexpr std::array<uint8_t, 64> kIdctFromNatural = idct_from_natural();

const IdctWeights kIdctWeights;

void IdctTable::set(const std::array<uint16_t, 64>& natural) {
  for (int i = 0; i < 64; ++i) {
    const int at = kIdctFromNatural[i];
    for (int copy = 0; copy < 4; ++copy) {
      step[at / 8 * 32 + copy * 8 + at % 8] = static_cast<int16_t>(natural[i]);
    }
  }
}

void idct_block(const int16_t* words, const int16_t* step, uint8_t* out, ptrdiff_t stride) {
  std::array<int16_t, 64> block;  // natural order, dequantized; then the first pass's results
  bool only_first_row = true;
  for (int i = 0; i < 64; ++i) {
    const int at = kIdctFromNatural[i];
    block[i] = word(words[at] * step[at / 8 * 32 + at % 8]);
    only_first_row &= i < 8 || words[at] == 0;
  }
  for (int column = 0; column < 8; ++column) {
    // Where nothing stands below the first row libjpeg-turbo takes a shortcut, which wraps.
    if (only_first_row) {
      const int16_t value = word(block[column] * 4);
      for (int row = 0; row < 8; ++row) block[row * 8 + column] = value;
      continue;
    }
    int16_t x[8];
    int32_t sums[8];
    for (int row = 0; row < 8; ++row) x[row] = block[row * 8 + column];
    transform(x, kIdctRound1, sums);
    for (int row = 0; row < 8; ++row) {
      block[row * 8 + column] = saturated(sums[row] >> kIdctShift1);
    }
  }
  for (int row = 0; row < 8; ++row) {
    int32_t sums[8];
    transform(&block[row * 8], kIdctRound2, sums);
    for (int column = 0; column < 8; ++column) {
      const int sample = std::clamp(sums[column] >> kIdctShift2, -128, 127) + 128;
      out[row * stride + column] = static_cast<uint8_t>(sample);
    }
  }
}

void wrap_first_rows(const int16_t* groups, const int16_t* step, int lanes, int16_t* words) {
  for (int b = 0; b < lanes; ++b) {
    const auto at = [&](int i) { return (i / 8 * lanes + b) * 8 + i % 8; };
    bool only_first_row = true;
    for (int i = 0; i < 64; ++i) {
      const bool first_row = i < 16 && i % 2 == 0;
      only_first_row &= first_row || groups[at(i)] == 0;
    }
    if (!only_first_row) continue;
    for (int i = 0; i < 64; ++i) {
      const int half = i / 32, column = half * 8 + i % 4 * 2;
      words[at(i)] = word(word(groups[at(column)] * step[half * 32 + column % 8]) * 4);
    }
  }
}

void idct_row(const IdctTable& table, const BlockRow& blocks, int count, uint8_t* out,
              ptrdiff_t stride) {
  static const std::array<IdctRow, 3> by_level{idct_row_scalar, idct_row_avx2(), idct_row_avx512()};
  by_level[static_cast<size_t>(simd_level())](table, blocks, count, out, stride);
}

}  // namespace headrace
