// SPDX-License-Identifier: Apache-2.0
// The form of most tables of 256 values: a few numbers that compute them in fewer instructions than
// a lookup takes, where no registers hold a whole table (AVX2).
//
// The maker of a table says which form it should have; that is compared with the table at every
// value, so that a form never says anything else, and a table that has none is looked up.
#pragma once

#include <array>
#include <cstdint>

namespace headrace {

struct TableGuess {
  double slope = -1, offset = 0;  // floor(slope * value + offset), cut to 0 to 255; or, below 0:
  uint8_t mask = 255;             // value & mask,
  int threshold = 256;            // and from here on 255 less that
  bool operator==(const TableGuess&) const = default;
};

struct TableForm {
  enum class Kind : uint8_t { kNone, kMasked, kLine };
  using Sixteen = std::array<uint8_t, 16>;

  Kind kind = Kind::kNone;
  uint8_t mask = 255;  // kMasked: of the guess
  int threshold = 256;
  // kLine: Note [Lines by their upper and lower bits]
  Sixteen rise{}, fall{}, rank{};  // by the upper four bits of a value
  Sixteen part{}, order{};         // by the lower four
};

// kNone where the table is not what was guessed.
TableForm form_of(const std::array<uint8_t, 256>& table, const TableGuess& guess);

}  // namespace headrace
