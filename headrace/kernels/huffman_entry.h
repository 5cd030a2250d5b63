// SPDX-License-Identifier: Apache-2.0
// What one table lookup finds: one symbol, or two AC symbols at once. Internal to kernels/huffman*.
//
// An entry has 32 bits:
//    0-5   bits that all of it takes, codes and magnitudes
//    6     kRare: nothing was found here (a long code, a long magnitude, no such code, end of run)
//    7     kEnd: the block's DC value or its AC coefficients end here
//    8-14  how far it advances in zigzag order; 0 for an end of block
//   16-19  how far its first symbol advances; 0 when there is only one
//   20-23  magnitude bits of the first symbol
//   24-27  bits that the first symbol takes; kDc: this is a DC difference
//   28-31  magnitude bits of the second or only symbol, which end where the entry ends
//
// A note is an entry with the 32 bits of the stream where it was found, in the upper half.
#pragma once

#include <cstdint>

namespace headrace::huffman {

constexpr int kLookupBits = 11;
constexpr int kLookupSize = 1 << kLookupBits;
// A step takes at most this many bits, so that two fit between refills, which leave 56.
constexpr int kMostBits = 27;

constexpr uint32_t kRare = 0x40, kEnd = 0x80;
constexpr uint32_t kDc = 15u << 24, kDcMask = 0x0f0f0000;

constexpr uint32_t bits_of(uint32_t entry) { return entry & 63; }
constexpr uint32_t advance_of(uint32_t entry) { return entry >> 8 & 127; }
constexpr uint32_t first_advance_of(uint32_t entry) { return entry >> 16 & 15; }
constexpr uint32_t first_size_of(uint32_t entry) { return entry >> 20 & 15; }
constexpr uint32_t first_bits_of(uint32_t entry) { return entry >> 24 & 15; }
constexpr uint32_t last_size_of(uint32_t entry) { return entry >> 28; }
constexpr bool is_dc(uint32_t entry) { return (entry & kDcMask) == kDc; }

constexpr uint32_t dc_entry(uint32_t length, uint32_t size) {
  return (length + size) | kEnd | kDc | size << 28;
}
// As libjpeg does, every size 0 but that of 16 zeros ends the block.
constexpr uint32_t ac_entry(uint32_t length, uint32_t symbol) {
  const uint32_t size = symbol & 15, zeros = symbol >> 4;
  if (size == 0 && zeros != 15) return length | kEnd;
  return (length + size) | (zeros + 1) << 8 | size << 28;
}

// The value whose `size` bits end `end` bits into `stream` (F.2.2.1, EXTEND).
constexpr int value_at(uint32_t stream, uint32_t end, uint32_t size) {
  const uint32_t turned = end & 31 ? stream << (end & 31) | stream >> (32 - (end & 31)) : stream;
  const int value = static_cast<int>(turned & ((1u << size) - 1));
  return 2 * value < 1 << size ? value - (1 << size) + 1 : value;
}

}  // namespace headrace::huffman
