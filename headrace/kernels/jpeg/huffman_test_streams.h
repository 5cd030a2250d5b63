// SPDX-License-Identifier: Apache-2.0
// For tests of the entropy decoder: streams of symbols that encoders rarely write, and a bit-by-bit
// decoder following Annex F.2.2 of the standard, which shares no code with ours.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "headrace/kernels/jpeg/huffman.h"

namespace headrace::huffman_test {

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  int below(int bound) { return int(engine_() % uint32_t(bound)); }
  bool one_in(int n) { return below(n) == 0; }

 private:
  std::mt19937 engine_;
};

// A table that libjpeg accepts: the symbols of baseline pictures, or any symbols if `odd`; few or
// all of them, of few or all lengths.
inline HuffmanSpec random_spec(Random& random, HuffmanUse use, bool odd) {
  std::vector<uint8_t> symbols;
  if (use == HuffmanUse::kDC) {
    for (int size = 0; size <= (odd ? 15 : 11); ++size) symbols.push_back(uint8_t(size));
  } else {
    for (int symbol = 0; symbol < 256; ++symbol) {
      const int size = symbol & 15, zeros = symbol >> 4;
      if (odd || (size >= 1 && size <= 10) || symbol == 0 || symbol == 0xf0) {
        if (size <= 3 || random.one_in(1 + zeros)) symbols.push_back(uint8_t(symbol));
      }
    }
  }
  std::shuffle(symbols.begin(), symbols.end(), std::mt19937(uint32_t(random.below(1 << 30))));
  if (random.one_in(3)) symbols.resize(1 + size_t(random.below(int(symbols.size()))));
  if (use == HuffmanUse::kAC && !random.one_in(6) &&
      std::find(symbols.begin(), symbols.end(), 0) == symbols.end()) {
    symbols[size_t(random.below(int(symbols.size())))] = 0;  // an end of block
  }
  HuffmanSpec spec;
  std::copy(symbols.begin(), symbols.end(), spec.symbols.begin());
  // Random code lengths within the remaining code space, counted in 16-bit codes, one of which
  // stays unused.
  const int shortest = 1 + random.below(4), spread = 1 + random.below(16);
  int room = 65535;
  for (int left = int(symbols.size()); left > 0; --left) {
    int length = std::min(16, shortest + random.below(spread));
    while (1 << (16 - length) > room - (left - 1)) ++length;
    room -= 1 << (16 - length);
    ++spec.counts[size_t(length - 1)];
  }
  return spec;
}

inline int symbols_of(const HuffmanSpec& spec) {
  return std::accumulate(spec.counts.begin(), spec.counts.end(), 0);
}

class BitWriter {
 public:
  void put(uint32_t bits, int count) {
    for (int i = count - 1; i >= 0; --i) {
      if (bits_ % 8 == 0) bytes_.push_back(0);
      bytes_.back() |= uint8_t((bits >> i & 1) << (7 - bits_ % 8));
      ++bits_;
    }
  }
  // Writes the symbol's code by Annex C; false if the table does not contain it.
  bool put_symbol(const HuffmanSpec& spec, int symbol) {
    uint32_t code = 0;
    int at = 0;
    for (int length = 1; length <= 16; ++length, code <<= 1) {
      for (int i = 0; i < spec.counts[length - 1]; ++i, ++code, ++at) {
        if (spec.symbols[at] == symbol) return put(code, length), true;
      }
    }
    return false;
  }
  uint64_t bits() const { return bits_; }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
  uint64_t bits_ = 0;
};

// One block's symbols, drawn from the tables until it is full; symbols that overflow the block only
// if no other is available.
inline void put_random_block(Random& random, const HuffmanSpec& dc, const HuffmanSpec& ac,
                             BitWriter& out) {
  const int difference = dc.symbols[random.below(symbols_of(dc))];
  out.put_symbol(dc, difference);
  out.put(uint32_t(random.below(1 << difference)), difference);
  const int symbols = symbols_of(ac), ends_after = random.below(70);
  for (int k = 1; k <= 63;) {
    std::vector<int> fitting;
    for (int i = 0; i < symbols; ++i) {
      const int size = ac.symbols[i] & 15, zeros = ac.symbols[i] >> 4;
      const bool ends = size == 0 && zeros < 15;
      if (ends ? k > ends_after : k + zeros <= 63) fitting.push_back(ac.symbols[i]);
    }
    const int symbol = fitting.empty() ? ac.symbols[random.below(symbols)]
                                       : fitting[size_t(random.below(int(fitting.size())))];
    const int size = symbol & 15, zeros = symbol >> 4;
    out.put_symbol(ac, symbol);
    out.put(uint32_t(random.below(1 << size)), size);
    if (size == 0 && zeros < 15) break;
    k += zeros + 1;
  }
}

// Annex F.2.2, one bit at a time.
class ReferenceDecoder {
 public:
  ReferenceDecoder(std::span<const uint8_t> bytes, uint64_t bit) : bytes_(bytes), bit_(bit) {}

  // False for what libjpeg warns about or tolerates: an invalid code, the end of the data, a
  // coefficient after the last.
  bool block(const HuffmanSpec& dc, const HuffmanSpec& ac, int& predictor,
             std::array<int16_t, 64>& zigzag) {
    zigzag.fill(0);
    const int size = symbol(dc);
    if (size < 0) return false;
    predictor += extended(size);
    zigzag[0] = int16_t(predictor);
    for (int k = 1; k <= 63;) {
      const int both = symbol(ac);
      if (both < 0) return false;
      const int zeros = both >> 4, bits = both & 15;
      if (bits == 0 && zeros != 15) break;
      k += zeros;
      const int value = extended(bits);
      if (k > 63) return false;
      zigzag[k++] = int16_t(value);
    }
    return bit_ <= bytes_.size() * 8;
  }
  uint64_t bit() const { return bit_; }

 private:
  int next() {
    const uint64_t at = bit_++;
    return at / 8 < bytes_.size() ? bytes_[at / 8] >> (7 - at % 8) & 1 : 0;
  }
  int symbol(const HuffmanSpec& spec) {  // -1 when there is none
    int code = 0, first = 0, at = 0;
    for (int length = 1; length <= 16; ++length) {
      code = code * 2 + next();
      const int count = spec.counts[length - 1];
      if (code - first < count) return spec.symbols[at + code - first];
      at += count;
      first = (first + count) * 2;
    }
    return -1;
  }
  int extended(int size) {
    int value = 0;
    for (int i = 0; i < size; ++i) value = value * 2 + next();
    return size > 0 && value < 1 << (size - 1) ? value - (1 << size) + 1 : value;
  }

  std::span<const uint8_t> bytes_;
  uint64_t bit_;
};

}  // namespace headrace::huffman_test
