// SPDX-License-Identifier: Apache-2.0
// Conversions between the orders of a block's coefficients: zigzag, as in the planes, and that of
// the inverse transform. Internal to kernels/.
#pragma once

#include <array>
#include <cstdint>

#include "headrace/kernels/jpeg/idct_levels.h"
#include "headrace/kernels/jpeg/zigzag.h"

namespace headrace {

// Byte order of a block that gives groups of words without shuffles: the even bytes of 16, extended
// to words, are group 2 * i of Note [Order of a block], the odd ones group 2 * i + 1. Byte i is
// coefficient kZigzagOfByte[i].
struct alignas(64) ByteOrder {
  std::array<uint8_t, 64> zigzag{};
};
constexpr ByteOrder kZigzagOfByte = [] {
  std::array<uint8_t, 64> zigzag_of_natural{};
  for (uint8_t k = 0; k < 64; ++k) zigzag_of_natural[kNaturalFromZigzag[k]] = k;
  ByteOrder order;
  for (int i = 0; i < 64; ++i) {
    const int pair = i / 16, word = i / 2 % 8, half = i % 2;
    const int row = kIdctOrder[2 * pair + word % 2], column = kIdctOrder[4 * half + word / 2];
    order.zigzag[i] = zigzag_of_natural[row * 8 + column];
  }
  return order;
}();

// The sample value of a block that has only a DC value.
inline uint8_t sample_of_dc(int16_t dc, int16_t step) {
  const auto value = static_cast<int16_t>(static_cast<uint16_t>(dc * step) * 4u);
  const int sample = ((value + 16) >> 5) + 128;
  return static_cast<uint8_t>(sample < 0 ? 0 : sample > 255 ? 255 : sample);
}

// Writes four such blocks, side by side.
inline void idct_dc_quad(const int16_t* dc, int16_t step, uint8_t* out, ptrdiff_t stride) {
  uint64_t row[4];
  for (int b = 0; b < 4; ++b) row[b] = sample_of_dc(dc[b], step) * uint64_t{0x0101010101010101};
  for (int y = 0; y < 8; ++y) __builtin_memcpy(out + y * stride, row, sizeof row);
}

}  // namespace headrace
