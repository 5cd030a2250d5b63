// SPDX-License-Identifier: Apache-2.0
// One lookup finds one symbol. Fields are placed where an instruction can use them directly: in a
// separate byte, or in the lowest five bits of a shift amount. An entry has 32 bits:
//
//   0-6    bits of code and magnitude, at most 32
//   7      kSecond: the code is longer than the first level's index (below)
//   8-12   32 less the magnitude bits
//   13     kNoValue: no magnitude, and nothing to store
//   16-23  how far it advances in zigzag order: 1 for a DC difference, 0 for an end of block
//   24-28  bits of the code alone
//   31     kEnds: the block ends here
//
// An entry that leads to the second level:
//
//   0-4    right shift of 32 bits of the stream that gives an index
//   8-31   byte offset of the entry with index 0 from the start of the table; may be negative
#pragma once

#include <cstdint>

#include "headrace/kernels/batch/machine_words.h"
#include "headrace/kernels/device_jpeg/device_image.h"

namespace headrace {

struct WalkEntry {
  static constexpr uint32_t kEnds = 0x80000000, kSecond = 0x80, kNoValue = 0x2000;
  // For bits that are not a valid code: takes one bit, so that every walk terminates, and moves
  // past the block's last coefficient, which marks the image as damaged.
  static constexpr uint32_t kNone = 1 | kNoValue | 65 << 16 | 1 << 24 | kEnds;

  HEADRACE_HD static uint32_t of_dc(uint32_t length, uint32_t size) {
    return (length + size) | (32 - size) << 8 | 1 << 16 | length << 24;
  }
  // As in libjpeg, any symbol of size 0 except the run of 16 zeros ends the block.
  HEADRACE_HD static uint32_t of_ac(uint32_t length, uint32_t symbol) {
    const uint32_t size = symbol & 15, zeros = symbol >> 4;
    if (size == 0 && zeros != 15) return length | kNoValue | length << 24 | kEnds;
    return (length + size) | (32 - size) << 8 | (zeros + 1) << 16 | length << 24;
  }
  // `first`: the entry for the first of the codes that begin with `prefix`, which are distinguished
  // by `bits` more.
  HEADRACE_HD static uint32_t of_second(uint32_t first, uint32_t prefix, uint32_t bits) {
    const uint32_t from = (first - (prefix << bits)) * 4;
    return from << 8 | kSecond | (32 - WalkTables::kFirstBits - bits);
  }

  // The symbol whose code begins these 16 bits.
  HEADRACE_HD static uint32_t find(const DeviceCode& code, uint32_t next16) {
    // Limits increase with the length: binary search for how many lengths are too short.
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
        return of_second(second, prefix, bits);
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

// Makes the tables of all images, one thread per word.
struct MakeTables {
  const DeviceImage* images = nullptr;
  const DeviceCode* codes = nullptr;
  const uint8_t* places = nullptr;  // WalkTables::place, word-aligned
  WalkTables* tables = nullptr;
  int64_t count = 0;

  HEADRACE_HD int64_t items() const { return count * kWalkTableWords; }

  HEADRACE_HD void operator()(int64_t item) const {
    constexpr int kPlaces = sizeof(WalkTables::place) / 4;
    const int64_t image = item / kWalkTableWords;
    const int word = static_cast<int>(item - image * kWalkTableWords);
    if (word < kPlaces) {
      words::store(tables[image].place + word * 4, words::load<1>(places + word * 4));
    } else {
      const int entry = word - kPlaces, table = entry / WalkTables::kSize,
                i = entry % WalkTables::kSize;
      tables[image].entries[table][i] = WalkEntry::at(codes[images[image].code[table]], i);
    }
  }
};

}  // namespace headrace
