// SPDX-License-Identifier: Apache-2.0
// Reads packed rows with AVX2 but without pdep, which takes hundreds of cycles on some CPUs: a
// quad's counts are computed first, then its blocks are expanded (packed_blocks_opening_loops.h).
// Scalar reference: packed_blocks_scalar.cc.
#include "headrace/kernels/jpeg/packed_blocks_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/jpeg/packed_blocks_ranks.h"
#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx2,bmi,bmi2,popcnt,lzcnt");

#include "headrace/kernels/jpeg/packed_blocks_unpack_loops.h"
// These need the definitions above.
#include "headrace/kernels/jpeg/packed_blocks_opening_loops.h"

namespace headrace {
namespace {

// The DC value and the mask of a block that begins at b.at.
HEADRACE_INLINE void begin_compact_block(GroupState& group, uint32_t quad, int j, int width,
                                         BlockBits& b) {
  group.dc += dc_difference<CompactBits>(group, j, width);
  b.at += static_cast<uint64_t>(width);
  const int last = static_cast<int>(quad >> (6 * j) & 63);
  b.mask = CompactBits::low(bits_63(b.bytes, b.at) << 1, last) | uint64_t{1} << last;
  b.mask &= ~uint64_t{1};
  b.at += static_cast<uint64_t>(last - (last > 0));
  b.count = static_cast<uint64_t>(CompactBits::count(b.mask));
}

// Where the planes of a quad are written. Blocks that are neither short nor long are written
// directly.
template <bool kWide, int kLevels>
HEADRACE_INLINE void draft_quad(GroupState& group, uint32_t quad, const PlanePlace& place,
                                QuadDraft& draft) {
  BlockBits blocks[4];
  const int width = static_cast<int>(quad >> kDcWidthAt & 15);
  const auto look = [](const BlockBits& b) {
    return kWide ? bits_63(b.bytes, b.at) : bits_57(b.bytes, b.at);
  };
  HEADRACE_FOUR {
    BlockBits& b = blocks[j];
    b.bytes = group.payload;
    b.at = group.at[j];
    begin_compact_block(group, quad, j, width, b);
    place.dc[j] = static_cast<int16_t>(group.dc);
    place.set[2][8 * j] = b.mask;
  }
  HEADRACE_FOUR {
    BlockBits& b = blocks[j];
    const uint64_t signs = draft.signs[j] = look(b);
    b.at += b.count;
    const uint64_t second = kLevels > 1 ? CompactBits::low(look(b), static_cast<int>(b.count)) : 0;
    const auto count = static_cast<uint64_t>(CompactBits::count(second));
    draft.second[j] = second;
    draft.length[j] = b.count > kShort || count > kShortSecond ? Length::kLong : Length::kShort;
    if (__builtin_expect(count > kLongSecond, 0)) {
      b.at = place_longest<kWide, kLevels>(b, signs, place, j);
      draft.length[j] = Length::kDone;
      b.count = 0;  // no bits remain
    } else if constexpr (kLevels > 1) {
      b.at += b.count;
      b.count = count;
    }
  }
  uint32_t bit[4];
  if constexpr (kLevels > 1) {
    HEADRACE_FOUR {
      bit[j] = static_cast<uint32_t>(look(blocks[j]));
      blocks[j].at += blocks[j].count;
    }
    draft.bits[2][0] = bit[0] | uint64_t{bit[1]} << 32;
    draft.bits[2][1] = bit[2] | uint64_t{bit[3]} << 32;
  }
#pragma GCC unroll 7
  for (int size = 3; size <= kLevels; ++size) {
    HEADRACE_FOUR {
      BlockBits& b = blocks[j];
      uint64_t window = look(b);
      const uint64_t more = CompactBits::low(window, static_cast<int>(b.count));
      const auto count = static_cast<uint64_t>(CompactBits::count(more));
      draft.more[size - 1][j] = static_cast<uint32_t>(more);
      b.at += b.count;
      window = kWide || size < 4 ? look(b) : window >> b.count;
      bit[j] = static_cast<uint32_t>(window);
      b.at += count;
      b.count = count;
    }
    draft.bits[size][0] = bit[0] | uint64_t{bit[1]} << 32;
    draft.bits[size][1] = bit[2] | uint64_t{bit[3]} << 32;
  }
  HEADRACE_FOUR group.at[j] = blocks[j].at;
}

template <bool kWide, int kLevels>
void unpack_compact_quad(GroupState& group, uint32_t quad, const PlanePlace& place) {
  QuadDraft draft;
  draft_quad<kWide, kLevels>(group, quad, place, draft);
#pragma GCC unroll 2
  for (int pair = 0; pair < 2; ++pair) {
    const int j = 2 * pair;
    if (__builtin_expect(draft.length[j] == Length::kShort && draft.length[j + 1] == Length::kShort,
                         1)) {
      const Values second = short_pair<kLevels>(draft, pair);
      place_short<kLevels>(draft, j, _mm256_permute2x128_si256(second.low, second.low, 0x00),
                           _mm256_permute2x128_si256(second.high, second.high, 0x00), place);
      place_short<kLevels>(draft, j + 1, _mm256_permute2x128_si256(second.low, second.low, 0x11),
                           _mm256_permute2x128_si256(second.high, second.high, 0x11), place);
      continue;
    }
    for (int one = j; one < j + 2; ++one) {
      if (draft.length[one] != Length::kDone) place_long<kLevels>(draft, one, place);
    }
  }
  *place.levels = static_cast<uint8_t>(kLevels | kCompactQuad);
}

// Skips a quad, only updating the counts.
template <bool kWide>
HEADRACE_INLINE void skip_quad(GroupState& group, uint32_t quad, int levels) {
  BlockBits blocks[4];
  const int width = static_cast<int>(quad >> kDcWidthAt & 15);
  HEADRACE_FOUR {
    BlockBits& b = blocks[j];
    b.bytes = group.payload;
    b.at = group.at[j];
    begin_compact_block(group, quad, j, width, b);
    b.at += b.count;
  }
  for (int size = 2; size <= levels; ++size) {
    HEADRACE_FOUR {
      BlockBits& b = blocks[j];
      const uint64_t window = kWide ? bits_63(b.bytes, b.at) : bits_57(b.bytes, b.at);
      b.at += b.count;
      b.count = static_cast<uint64_t>(
          CompactBits::count(CompactBits::low(window, static_cast<int>(b.count))));
      b.at += b.count;
    }
  }
  HEADRACE_FOUR group.at[j] = blocks[j].at;
}

void unpack_compact_quads(GroupState& group, const uint8_t* quads, int skip, int count,
                          PlanePlace place) {
  uint32_t quad;
  for (int q = 0; q < skip; ++q) {
    __builtin_memcpy(&quad, quads + 4 * q, 4);
    const int code = static_cast<int>(quad >> kLevelCodeAt), levels = kLevelsOfCode[code];
    if (levels > kMaxLevels || (quad & kLastMask) == 0) {
      unpack_any_quad<CompactBits, true>(group, quad, place);
    } else if (code == kDense7 || code == kDense9) {
      skip_quad<true>(group, quad, levels);
    } else {
      skip_quad<false>(group, quad, levels);
    }
  }
  using Unpack = void (*)(GroupState&, uint32_t, const PlanePlace&);
  static constexpr std::array<Unpack, 16> kByCode = {unpack_compact_quad<false, 1>,
                                                     unpack_compact_quad<false, 2>,
                                                     unpack_compact_quad<false, 3>,
                                                     unpack_compact_quad<false, 4>,
                                                     unpack_compact_quad<false, 5>,
                                                     unpack_compact_quad<false, 6>,
                                                     unpack_compact_quad<false, 7>,
                                                     unpack_compact_quad<false, 8>,
                                                     unpack_compact_quad<false, 9>,
                                                     nullptr,
                                                     nullptr,
                                                     nullptr,
                                                     unpack_compact_quad<true, 7>,
                                                     unpack_compact_quad<true, 9>};
  for (int q = skip; q < skip + count; ++q) {
    __builtin_memcpy(&quad, quads + 4 * q, 4);
    const int code = static_cast<int>(quad >> kLevelCodeAt);
    if (kLevelsOfCode[code] > kMaxLevels || (quad & kLastMask) == 0) {
      unpack_any_quad<CompactBits, false>(group, quad, place);
    } else {
      kByCode[code](group, quad, place);
    }
    for (uint64_t*& set : place.set) set += 32;
    place.dc += 4;
    ++place.levels;
  }
}

}  // namespace

UnpackQuads unpack_quads_compact_avx2() { return unpack_compact_quads; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
UnpackQuads unpack_quads_compact_avx2() { return nullptr; }
}  // namespace headrace

#endif
