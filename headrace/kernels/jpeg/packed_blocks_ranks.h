// SPDX-License-Identifier: Apache-2.0
// Shuffles that open gaps: bytes are spread, in order, over the positions, of eight, whose bit is
// set in a mask. The table has, for each position, the index of its byte. Internal to kernels/.
#pragma once

#include <cstdint>

namespace headrace {

// The rank of a position whose bit is not set: a shuffle gives 0 for it, and for ranks up to 56
// higher.
constexpr uint8_t kRankOfGap = 192;

struct alignas(64) Ranks {
  // Number of set bits before each position.
  uint8_t of[256][8]{};
  uint8_t behind_eight[256][8]{};  // the same for eight bytes that follow eight others
  uint8_t with_count[256][16]{};   // `of` plus eight times its number of set bits
};

constexpr Ranks make_ranks() {
  Ranks ranks;
  for (int mask = 0; mask < 256; ++mask) {
    uint8_t rank = 0;
    for (int place = 0; place < 8; ++place) {
      const bool set = mask >> place & 1;
      ranks.of[mask][place] = ranks.with_count[mask][place] = set ? rank : kRankOfGap;
      ranks.behind_eight[mask][place] = static_cast<uint8_t>(set ? rank + 8 : kRankOfGap);
      if (set) ++rank;
    }
    for (int place = 8; place < 16; ++place) ranks.with_count[mask][place] = rank;
  }
  return ranks;
}

inline constexpr Ranks kRanks = make_ranks();

}  // namespace headrace
