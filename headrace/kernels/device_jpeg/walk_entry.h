// SPDX-License-Identifier: Apache-2.0
// What one lookup of the walk finds: one symbol. An entry has 32 bits:
//
//   0-7    bits that code and magnitude take
//   8-15   magnitude bits
//   16-23  how far it advances in zigzag order: 1 for a DC difference, 0 for an end of block
//   24-28  bits of the code alone
//   30     kSecond: the code is longer than the first level's index. Then the low half is where the
//          second level lies, in bytes, and 16-23 are 32 less the bits of its index
//   31     kEnds: the block ends here
#pragma once

#include <cstdint>

#include "headrace/kernels/batch/machine_words.h"
#include "headrace/kernels/device_jpeg/device_picture.h"

namespace headrace {

struct WalkEntry {
  static constexpr uint32_t kEnds = 0x80000000, kSecond = 0x40000000;
  // Where no code begins: takes a bit, so that every walk ends, and leaves the block behind its
  // last coefficient, which marks the picture.
  static constexpr uint32_t kNone = 1 | 65 << 16 | 1 << 24 | kEnds;

  HEADRACE_HD static uint32_t of_dc(uint32_t length, uint32_t size) {
    return (length + size) | size << 8 | 1 << 16 | length << 24;
  }
  // As in libjpeg, every size 0 but that of 16 zeros ends the block.
  HEADRACE_HD static uint32_t of_ac(uint32_t length, uint32_t symbol) {
    const uint32_t size = symbol & 15, zeros = symbol >> 4;
    if (size == 0 && zeros != 15) return length | length << 24 | kEnds;
    return (length + size) | size << 8 | (zeros + 1) << 16 | length << 24;
  }
  HEADRACE_HD static uint32_t of_second(uint32_t first, uint32_t bits) {
    return first * 4 | (32 - bits) << 16 | kSecond;
  }

  // The symbol that begins the 16 bits.
  HEADRACE_HD static uint32_t find(const DeviceCode& code, uint32_t next16) {
    // Limits rise with the lengths: by halves, how many lengths are too short.
    uint32_t below = 0;
    HEADRACE_UNROLLED
    for (uint32_t step = 8; step > 0; step /= 2) {
      if (next16 >= code.limit[below + step]) below += step;
    }
    const uint32_t length = below + 1;
    if (next16 >= code.limit[length]) return kNone;
    const uint32_t number = static_cast<uint32_t>(code.offset[length]) + (next16 >> (16 - length));
    const uint32_t symbol = code.symbols[number & 255];
    return code.is_dc ? of_dc(length, symbol) : of_ac(length, symbol);
  }

  // Entry i of a code's table.
  HEADRACE_HD static uint32_t at(const DeviceCode& code, uint32_t i) {
    constexpr uint32_t kFirst = WalkTables::kFirstSize, kLeft = 16 - WalkTables::kFirstBits;
    const bool is_first = i < kFirst;
    uint32_t prefix = code.first_long, second = kFirst;
    if (is_first && i < prefix) return find(code, i << kLeft);
    HEADRACE_ROLLED
    for (uint32_t bits = 1; bits <= kLeft; ++bits) {
      const uint32_t entries = code.long_entries[bits], size = entries << bits;
      if (is_first && i - prefix < entries) {
        return of_second(second + ((i - prefix) << bits), bits);
      }
      if (!is_first && i - second < size) {
        const uint32_t from = i - second;
        const uint32_t rest = from & ((1u << bits) - 1);
        return find(code, (prefix + (from >> bits)) << kLeft | rest << (kLeft - bits));
      }
      prefix += entries;
      second += size;
    }
    return kNone;
  }
};

// Makes the tables of all pictures: a thread a word.
struct MakeTables {
  const DevicePicture* pictures = nullptr;
  const DeviceCode* codes = nullptr;
  const uint8_t* places = nullptr;  // 128 of them, aligned to a word: WalkTables::place
  WalkTables* tables = nullptr;
  int64_t count = 0;

  HEADRACE_HD int64_t items() const { return count * kWalkTableWords; }

  HEADRACE_HD void operator()(int64_t item) const {
    constexpr int kEntries = 4 * WalkTables::kSize;
    const int64_t picture = item / kWalkTableWords;
    const int word = static_cast<int>(item - picture * kWalkTableWords);
    if (word < kEntries) {
      const int table = word / WalkTables::kSize, i = word % WalkTables::kSize;
      tables[picture].entries[table][i] = WalkEntry::at(codes[pictures[picture].code[table]], i);
    } else {
      const int at = (word - kEntries) * 4;
      words::store(tables[picture].place + at, words::load<1>(places + at));
    }
  }
};

}  // namespace headrace
