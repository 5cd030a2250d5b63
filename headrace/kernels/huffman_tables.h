// SPDX-License-Identifier: Apache-2.0
// What a HuffmanTable holds. Internal to kernels/huffman*.
#pragma once

#include <array>
#include <cstdint>

#include "headrace/kernels/huffman.h"
#include "headrace/kernels/huffman_entry.h"

namespace headrace {

struct HuffmanTable::Tables {
  // By the next kLookupBits bits of the stream. First, because walk() finds it there.
  alignas(64) std::array<uint32_t, huffman::kLookupSize> entries;

  // For what the entries do not say, by the next 16 bits: codes of `length` lie below
  // limit[length], and offset[length] + (bits >> (16 - length)) numbers their symbols.
  std::array<uint32_t, 17> limit;
  std::array<int, 17> offset;
  HuffmanUse use;
  bool end_of_run = false;
  HuffmanSpec spec;

  // The single symbol that starts the 16 bits; 0 when there is none.
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

}  // namespace headrace
