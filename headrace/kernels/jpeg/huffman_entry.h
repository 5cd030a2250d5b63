// SPDX-License-Identifier: Apache-2.0
// A table lookup finds one symbol, or two AC symbols at once. Internal to kernels/huffman*.
//
// An entry has 32 bits:
//    0-5   total number of bits, codes and magnitudes
//    6     kRare: nothing was found here (a long code, a long magnitude, no such code, end of run)
//    8-14  how far it advances in zigzag order: 0 for an end of block, 1 for a DC difference
//   15     kEnd: the block's DC value or its AC coefficients end here
//   16-19  magnitude bits of the second or only symbol, which end where the entry ends
//   20-23  magnitude bits of the first of two symbols
//   24-27  how far the first of two symbols advances; 0 when there is only one
//   28-31  bits that the first of two symbols takes, at most 10; 15 marks a DC difference
// The order suits the vector code that extracts the fields (huffman_blocks_avx512.cc).
//
// A note is an entry with the 32 bits of the stream where it was found, in the upper half.
#pragma once

#include <cstdint>

namespace headrace::huffman {

// Number of bits of the stream that index the table.
constexpr int kAcBits = 11, kDcBits = 7;
constexpr int kAcSize = 1 << kAcBits;
// A step takes at most this many bits, so that three steps fit between refills, which leave 57
// bits.
constexpr int kMaxBits = 18;

constexpr uint32_t kRare = 0x40, kEnd = 0x8000;
// The part of an entry that is added to the lane's account; the rest describes the symbols.
constexpr uint32_t kAccounted = 0xffff;
constexpr uint32_t kDc = 0xf0000000, kDcMask = 0xff000000;

constexpr uint32_t bits_of(uint32_t entry) { return entry & 63; }
constexpr uint32_t advance_of(uint32_t entry) { return entry >> 8 & 127; }
constexpr uint32_t last_size_of(uint32_t entry) { return entry >> 16 & 15; }
constexpr uint32_t first_size_of(uint32_t entry) { return entry >> 20 & 15; }
constexpr uint32_t first_advance_of(uint32_t entry) { return entry >> 24 & 15; }
constexpr uint32_t first_bits_of(uint32_t entry) { return entry >> 28; }
constexpr bool is_dc(uint32_t entry) { return (entry & kDcMask) == kDc; }

constexpr uint32_t dc_entry(uint32_t length, uint32_t size) {
  return (length + size) | 1 << 8 | kEnd | kDc | size << 16;
}
// As in libjpeg, any symbol of size 0 except the run of 16 zeros ends the block.
constexpr uint32_t ac_entry(uint32_t length, uint32_t symbol) {
  const uint32_t size = symbol & 15, zeros = symbol >> 4;
  if (size == 0 && zeros != 15) return length | kEnd;
  return (length + size) | (zeros + 1) << 8 | size << 16;
}
// An entry without a second symbol, as the first of two.
constexpr uint32_t as_first(uint32_t entry) {
  return bits_of(entry) | advance_of(entry) << 8 | last_size_of(entry) << 20 |
         advance_of(entry) << 24 | bits_of(entry) << 28;
}
// The first of two symbols alone.
constexpr uint32_t only_first(uint32_t entry) {
  return first_bits_of(entry) | first_advance_of(entry) << 8 | first_size_of(entry) << 16;
}

// Decodes the value whose `size` bits end at bit `end` of `stream`, counted from the highest
// (F.2.2.1, EXTEND).
constexpr int value_at(uint32_t stream, uint32_t end, uint32_t size) {
  const uint32_t field = stream << (end - size);
  const int positive = static_cast<int32_t>(field) >> 31;  // all ones, or zero
  return static_cast<int>(field >> 1 >> (31 - size)) - (~positive & ((1 << size) - 1));
}

// Value of a note's second or only symbol.
constexpr int last_value(uint64_t note) {
  const auto entry = static_cast<uint32_t>(note);
  return value_at(static_cast<uint32_t>(note >> 32), bits_of(entry), last_size_of(entry));
}

}  // namespace headrace::huffman
