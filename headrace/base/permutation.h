// SPDX-License-Identifier: Apache-2.0
// A keyed permutation of [0, n) that needs no table: O(1) memory, random access, stateless.
//
// An alternating Feistel network over the smallest power of two that holds n, walked along its
// cycle until the value lies below n (Black & Rogaway, CT-RSA 2002). Immutable and thread-safe.
#pragma once

#include <cstdint>

namespace headrace {

class Permutation {
 public:
  // REQUIRES: size >= 1.
  Permutation(int64_t size, uint64_t key);
  int64_t operator()(int64_t position) const;

 private:
  uint64_t encrypt(uint64_t value) const;
  uint64_t size_, key_;
  int low_bits_, high_bits_;
};

}  // namespace headrace
