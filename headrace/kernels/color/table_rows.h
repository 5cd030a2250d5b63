// SPDX-License-Identifier: Apache-2.0
// Maps 8-bit rows through a table of 256 values, for color operators that map each sample by its
// value alone.
//
// Any thread may call it. It may read and write up to 63 bytes past `count` samples. In and out may
// be the same row.
#pragma once

#include <array>
#include <cstdint>

namespace headrace {

// The form of a table of 256 values, which most tables have: a few numbers that compute its values
// in fewer instructions than a lookup, if registers cannot hold the whole table (AVX2).
//
// The creator of a table proposes a form; it is compared with the table at every value, so a form
// is never wrong, and a table without a form is looked up.
struct TableGuess {
  double slope = -1, offset = 0;  // if slope >= 0: clamp(floor(slope * value + offset), 0, 255)
  uint8_t mask = 255;             // otherwise: value & mask,
  int threshold = 256;            // or, for values at or above this, 255 minus that
  bool operator==(const TableGuess&) const = default;
};

struct TableForm {
  enum class Kind : uint8_t { kNone, kMasked, kLine };
  using Sixteen = std::array<uint8_t, 16>;

  Kind kind = Kind::kNone;
  uint8_t mask = 255;  // kMasked: as guessed
  int threshold = 256;
  // kLine: Note [Lines by their upper and lower bits]
  Sixteen rise{}, fall{}, rank{};  // by the upper four bits of a value
  Sixteen part{}, order{};         // by the lower four
};

// Returns kNone if the table does not match the guess.
TableForm form_of(const std::array<uint8_t, 256>& table, const TableGuess& guess);

// out[i] = table[in[i]]. REQUIRES: `form` is the table's form, or kNone.
void look_up_row(const uint8_t table[256], const TableForm& form, const uint8_t* in, int count,
                 uint8_t* out);

}  // namespace headrace
