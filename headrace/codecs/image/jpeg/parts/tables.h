// SPDX-License-Identifier: Apache-2.0
// Huffman tables for writers: codes of symbols, the optimal table for given counts, and the
// standard tables. Any thread may call these functions.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "headrace/kernels/jpeg/huffman.h"

namespace headrace {

// The code of each symbol, and its length: 0 if there is none.
struct HuffmanCodes {
  struct Code {
    uint16_t bits = 0;
    uint8_t length = 0;
  };
  std::array<Code, 256> code{};
  // False for a spec that libjpeg rejects.
  bool build(const HuffmanSpec& spec, HuffmanUse use);
};

// How often each symbol of a table occurs.
using SymbolCounts = std::array<uint32_t, 256>;

// The optimal code with lengths up to 16 and without an all-ones code, built like libjpeg does
// (Annex K.2). At least one count must be nonzero.
HuffmanSpec optimal_spec(const SymbolCounts& counts);

// A table as stored in a DHT segment, after the byte with its class and slot.
std::vector<uint8_t> huffman_body(const HuffmanSpec& spec);

// The tables K.3 to K.6 of ISO/IEC 10918-1: DC luminance, AC luminance, DC
// chrominance, AC chrominance.
extern const std::array<HuffmanSpec, 4> kStandardSpecs;

}  // namespace headrace
