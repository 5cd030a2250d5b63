// SPDX-License-Identifier: Apache-2.0
// Which coefficients of a block are not zero: most are, so a writer that visits only the others is
// several times faster than one that looks at all.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "headrace/codecs/image/jpeg/headers/frame.h"

namespace headrace {

// For four neighbours in natural order, a bit each: the bits of their places in zigzag order.
using ZigzagBits = std::array<std::array<uint64_t, 16>, 16>;
extern const ZigzagBits kZigzagBits;

// Bit k is set where coefficient k in zigzag order is not zero.
inline uint64_t zigzag_mask(const int16_t* block) {
  constexpr uint64_t kLow15 = 0x7FFF7FFF7FFF7FFFu, kTop = 0x8000800080008000u;
  uint64_t mask = 0;
  for (int i = 0; i < 16; ++i) {
    uint64_t four;
    std::memcpy(&four, block + 4 * i, sizeof(four));
    const uint64_t tops = (((four & kLow15) + kLow15) | four) & kTop;
    // From bits 0, 16, 32 and 48 to 48, 49, 50 and 51; the other products stay apart below.
    const uint64_t gathered = (tops >> 15) * (uint64_t{1} << 48 | uint64_t{1} << 33 | 1u << 18 | 8);
    mask |= kZigzagBits[i][gathered >> 48 & 15];
  }
  return mask;
}

}  // namespace headrace
