// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/permutation.h"

#include <algorithm>
#include <bit>

namespace headrace {
namespace {

// Below six bits a Feistel network is visibly non-uniform; tiny sizes walk a little further
// instead.
constexpr int kMinimumBits = 6;

}  // namespace

Permutation::Permutation(int64_t size, uint64_t key)
    : size_(static_cast<uint64_t>(size)), key_(key) {
  const int bits = std::max(kMinimumBits, static_cast<int>(std::bit_width(size_ - 1)));
  low_bits_ = bits / 2;
  high_bits_ = bits - low_bits_;
}

}  // namespace headrace
