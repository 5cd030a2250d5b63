// SPDX-License-Identifier: Apache-2.0
// Data of a HuffmanTable. Internal to kernels/jpeg/huffman*.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/jpeg/huffman.h"
#include "headrace/kernels/jpeg/huffman_entry.h"

namespace headrace {

// Note [A table's address says how it is looked up]: DC tables are smaller, because four lanes with
// four tables each should fit in the L1 cache. walk() handles both kinds alike: the low six bits of
// a table's walking address are the shift that turns 64 bits into an index, and everything it reads
// is at fixed offsets from that address. That is why DC entries are preceded by 4 more bytes.
struct HuffmanTable::Tables {
  static constexpr unsigned kAcShift = 64 - huffman::kAcBits, kDcShift = 64 - huffman::kDcBits;
  static constexpr size_t kHead = 16;  // words before the entries

  uintptr_t walking_address() const { return reinterpret_cast<uintptr_t>(&words[kHead]) + shift(); }
  static const Tables& at(uintptr_t walking_address) {
    return *reinterpret_cast<const Tables*>((walking_address & ~uintptr_t{63}) - 4 * kHead);
  }
  static const void* entries_at(uintptr_t address) {
    return reinterpret_cast<const void*>(address - kAcShift);
  }
  // Mask of the account's bits that are kept (HuffmanCursor): a DC value starts a new block.
  static const void* kept_at(uintptr_t address) {
    return reinterpret_cast<const void*>(address - kAcShift - 16);
  }
  unsigned shift() const { return use == HuffmanUse::kDC ? kDcShift : kAcShift; }
  uint32_t* entries() { return &words[kHead + (shift() - kAcShift) / 4]; }
  size_t size() const { return size_t{1} << (64 - shift()); }
  void keep(uint64_t bits) { std::memcpy(entries() - 4, &bits, sizeof(bits)); }

  // must be first: see at()
  alignas(64) std::array<uint32_t, kHead + (1 << huffman::kAcBits)> words;

  // For codes not in the entries, by the next 16 bits: codes of `length` are below limit[length],
  // and their symbol's index is offset[length] + (bits >> (16 - length)).
  std::array<uint32_t, 17> limit;
  std::array<int, 17> offset;
  HuffmanUse use;
  SimdLevel level;  // SIMD level that it was built for
  bool end_of_run = false;
  HuffmanSpec spec;

  // The single symbol whose code begins these 16 bits; 0 if there is none.
  uint32_t find(uint32_t next16) const {
    for (uint32_t length = 1; length <= 16; ++length) {
      if (next16 >= limit[length]) continue;
      const uint8_t symbol = spec.symbols[(offset[length] + int(next16 >> (16 - length))) & 255];
      return use == HuffmanUse::kDC ? huffman::dc_entry(length, symbol)
                                    : huffman::ac_entry(length, symbol);
    }
    return 0;
  }
};

static_assert((HuffmanTable::Tables::kDcShift - HuffmanTable::Tables::kAcShift) % 4 == 0);

}  // namespace headrace
