// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/device/code.h"

#include <algorithm>
#include <array>

namespace headrace {
namespace {

// How many bits of index each entry of the first level leads on to: those of its longest code.
using SecondBits = std::array<uint8_t, WalkTables::kFirstSize>;

SecondBits second_bits_of(const HuffmanSpec& spec) {
  SecondBits bits{};
  uint32_t next = 0;
  for (int length = 1; length <= 16; ++length, next <<= 1) {
    const uint32_t count = spec.counts[length - 1];
    const int beyond = length - WalkTables::kFirstBits;
    if (beyond > 0 && count > 0) {
      const uint32_t first = next >> beyond, last = (next + count - 1) >> beyond;
      for (uint32_t entry = first; entry <= last; ++entry) bits[entry] = uint8_t(beyond);
    }
    next += count;
  }
  return bits;
}

}  // namespace

bool make_device_code(const HuffmanSpec& spec, HuffmanUse use, DeviceCode& code) {
  if (!is_usable(spec, use)) return false;
  code = {};
  code.is_dc = use == HuffmanUse::kDC;
  std::ranges::copy(spec.symbols, code.symbols);
  uint32_t next = 0;
  int symbols = 0;
  for (int length = 1; length <= 16; ++length) {
    const int count = spec.counts[length - 1];
    code.offset[length] = symbols - static_cast<int>(next);
    symbols += count;
    next += uint32_t(count);
    code.limit[length] = next << (16 - length);
    next <<= 1;
  }

  // Codes ascend with their lengths, so entries of one number of bits stand together.
  const SecondBits bits = second_bits_of(spec);
  uint32_t first = 0, second_size = 0;
  while (first < bits.size() && bits[first] == 0) ++first;
  code.first_long = first;
  for (uint32_t entry = first; entry < bits.size() && bits[entry] > 0; ++entry) {
    ++code.long_entries[bits[entry]];
    second_size += 1u << bits[entry];
  }
  return second_size <= uint32_t(WalkTables::kSecondSize);
}

}  // namespace headrace
