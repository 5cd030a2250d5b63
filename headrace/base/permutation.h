// SPDX-License-Identifier: Apache-2.0
// A keyed permutation of [0, n) that needs no table: O(1) memory, random access, stateless.
//
// An alternating Feistel network over the smallest power of two that holds n, with cycle walking
// until the value is below n (Black & Rogaway, CT-RSA 2002). Immutable and thread-safe; may be
// passed to a GPU kernel by value.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "headrace/base/host_device_function.h"

namespace headrace {

class Permutation {
 public:
  // REQUIRES: size >= 1.
  Permutation(int64_t size, uint64_t key) : size_(static_cast<uint64_t>(size)), key_(key) {
    const int bits = std::max(kMinimumBits, static_cast<int>(std::bit_width(size_ - 1)));
    low_bits_ = bits / 2;
    high_bits_ = bits - low_bits_;
  }

  HEADRACE_HD int64_t operator()(int64_t position) const {
    uint64_t value = static_cast<uint64_t>(position);
    do {
      value = encrypt(value);
    } while (value >= size_);
    return static_cast<int64_t>(value);
  }

 private:
  // Below six bits a Feistel network is visibly non-uniform; tiny sizes walk a little further
  // instead.
  static constexpr int kMinimumBits = 6;
  // Small domains mix few bits per round, so they need more rounds; eight pass the uniformity tests
  // for every size tested.
  static constexpr int kRounds = 8;

  HEADRACE_HD static uint64_t round_function(uint64_t half, uint64_t key) {
    uint64_t z = (half + key) * 0x9E3779B97F4A7C15;
    z ^= z >> 32;
    z *= 0xD6E8FEB86659FD93;
    return z ^ (z >> 32);
  }

  HEADRACE_HD uint64_t encrypt(uint64_t value) const {
    const uint64_t low_mask = (uint64_t{1} << low_bits_) - 1;
    const uint64_t high_mask = (uint64_t{1} << high_bits_) - 1;
    uint64_t low = value & low_mask, high = value >> low_bits_;
    uint64_t key = key_;
    for (int round = 0; round < kRounds; round += 2) {
      low ^= round_function(high, key) & low_mask;
      key += 0xA0761D6478BD642F;
      high ^= round_function(low, key) & high_mask;
      key += 0xA0761D6478BD642F;
    }
    return (high << low_bits_) | low;
  }

  uint64_t size_, key_;
  int low_bits_, high_bits_;
};

}  // namespace headrace
