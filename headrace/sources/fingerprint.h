// SPDX-License-Identifier: Apache-2.0
// A 64-bit fingerprint of a source's contents, the same on every machine and in every run. Resume
// states contain it, so what is hashed must not change.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "headrace/base/random.h"

namespace headrace {

class Fingerprint {
 public:
  void add(uint64_t word) { state_ = mix64(state_ ^ word, 0); }
  void add(std::string_view text) {
    static_assert(std::endian::native == std::endian::little);
    add(uint64_t{text.size()});
    for (; text.size() >= 8; text.remove_prefix(8)) add(word(text, 8));
    if (!text.empty()) add(word(text, text.size()));
  }
  uint64_t value() const { return state_; }

 private:
  static uint64_t word(std::string_view text, size_t bytes) {
    uint64_t out = 0;
    std::memcpy(&out, text.data(), bytes);
    return out;
  }
  uint64_t state_ = 0x4845414452414345;
};

}  // namespace headrace
