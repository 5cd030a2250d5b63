// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/jpeg/idct.h"

#include <algorithm>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/jpeg/idct_levels.h"
#include "headrace/kernels/jpeg/zigzag.h"

namespace headrace {
namespace {

// Wrapping 16-bit arithmetic, like vector instructions. Sums of 32 bits wrap as unsigned.
int word(int value) { return static_cast<int16_t>(static_cast<uint16_t>(value)); }
uint32_t product(int value, int factor) { return static_cast<uint32_t>(value * factor); }
int shifted(uint32_t sum, int bits) { return static_cast<int32_t>(sum) >> bits; }

// The first row's value, scaled as the first pass scales its results.
constexpr int kScale = 1 << (kIdctBits - kIdctShift1);

// One dimension, before the final shift.
template <typename Values>
void transform(const Values& x, uint32_t round, std::array<uint32_t, 8>& out) {
  const uint32_t even0 = product(word(x[0] + x[4]), 1 << kIdctBits) + round;
  const uint32_t even1 = product(word(x[0] - x[4]), 1 << kIdctBits) + round;
  const uint32_t even2 = product(x[2], kF0541) + product(x[6], kF0541 - kF1847);
  const uint32_t even3 = product(x[2], kF0541 + kF0765) + product(x[6], kF0541);
  const int z3 = word(x[3] + x[7]), z4 = word(x[1] + x[5]);
  const uint32_t turn3 = product(z3, kF1175 - kF1961) + product(z4, kF1175);
  const uint32_t turn4 = product(z3, kF1175) + product(z4, kF1175 - kF0390);
  const uint32_t odd0 = product(x[7], kF0298 - kF0899) - product(x[1], kF0899) + turn3;
  const uint32_t odd1 = product(x[5], kF2053 - kF2562) - product(x[3], kF2562) + turn4;
  const uint32_t odd2 = product(x[3], kF3072 - kF2562) - product(x[5], kF2562) + turn3;
  const uint32_t odd3 = product(x[1], kF1501 - kF0899) - product(x[7], kF0899) + turn4;
  out = {even0 + even3 + odd3, even1 + even2 + odd2, even1 - even2 + odd1, even0 - even3 + odd0,
         even0 - even3 - odd0, even1 - even2 - odd1, even1 + even2 - odd2, even0 + even3 - odd3};
}

// A column's eight rows, from values in block order: words, or quantization steps, whose groups are
// `group` values apart.
std::array<int, 8> column_of(const int16_t* values, int column, int group) {
  const int16_t* const at = values + column / 4 * group + column % 4 * 2;
  const int pair = 2 * group;
  return {at[0], at[2 * pair + 1], at[pair],     at[3 * pair],
          at[1], at[3 * pair + 1], at[pair + 1], at[2 * pair]};
}

bool only_first_row(const int16_t* words) {
  int below = 0;
  for (int column = 0; column < 8; ++column) {
    const std::array<int, 8> x = column_of(words, column, 8);
    below |= x[1] | x[2] | x[3] | x[4] | x[5] | x[6] | x[7];
  }
  return below == 0;
}

// Its results in natural order.
void first_pass(const int16_t* words, const int16_t* step, int rows[8][8]) {
  const bool wraps = only_first_row(words);  // Note [Where the first row wraps]
  for (int column = 0; column < 8; ++column) {
    const int to = kIdctOrder[column];
    const std::array<int, 8> q = column_of(step, column, 32);
    std::array<int, 8> x = column_of(words, column, 8);
    if (!(x[1] | x[2] | x[3] | x[4] | x[5] | x[6] | x[7])) {
      const int first = word(x[0] * q[0]) * kScale;
      const int value = wraps ? word(first) : std::clamp(first, -32768, 32767);
      for (int row = 0; row < 8; ++row) rows[row][to] = value;
      continue;
    }
    std::array<uint32_t, 8> sums;
#pragma GCC unroll 8
    for (int row = 0; row < 8; ++row) x[row] = word(x[row] * q[row]);
    transform(x, kIdctRound1, sums);
#pragma GCC unroll 8
    for (int row = 0; row < 8; ++row) {
      rows[row][to] = std::clamp(shifted(sums[row], kIdctShift1), -32768, 32767);
    }
  }
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
constexpr std::array<uint8_t, 64> kIdctFromZigzag = [] {
  std::array<uint8_t, 64> made{};
  for (int k = 0; k < 64; ++k) made[k] = kIdctFromNatural[kNaturalFromZigzag[k]];
  return made;
}();
alignas(64) constexpr std::array<uint8_t, 64> kZigzagFromIdct = [] {
  std::array<uint8_t, 64> made{};
  for (uint8_t k = 0; k < 64; ++k) made[kIdctFromZigzag[k]] = k;
  return made;
}();

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
  int rows[8][8];
  first_pass(words, step, rows);
  for (int row = 0; row < 8; ++row) {
    std::array<uint32_t, 8> sums;
    transform(rows[row], kIdctRound2, sums);
#pragma GCC unroll 8
    for (int column = 0; column < 8; ++column) {
      const int sample = std::clamp(shifted(sums[column], kIdctShift2), -128, 127) + 128;
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
      words[at(i)] = static_cast<int16_t>(
          word(word(groups[at(column)] * step[half * 32 + column % 8]) * kScale));
    }
  }
}

void idct_row(const IdctTable& table, const BlockRow& blocks, int count, uint8_t* out,
              ptrdiff_t stride) {
  static const ByLevel<IdctRow> by_level{idct_row_scalar, idct_row_avx2(), idct_row_avx512(),
                                         idct_row_neon()};
  by_level.selected()(table, blocks, count, out, stride);
}

}  // namespace headrace
