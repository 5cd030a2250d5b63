// SPDX-License-Identifier: Apache-2.0
// Bits of a packed row -> planes. Included by each SIMD level's file between its target pragmas,
// after all other includes, so that every SIMD level compiles its own functions; `Bits` is the
// level's implementation of spreading bits over a mask. Internal to kernels/.

namespace headrace {
namespace {

// Note [How a block is read]
// Layout of a block: DC difference | which of the coefficients 1 .. last - 1 are not 0 | their
// signs | for each size s = 2 .. levels: which of those of at least s - 1 bits have at least s |
// bit s - 2 of these. Spreading bits over the mask of the coefficients that they belong to (pdep)
// gives planes at once; counting the mask's bits (popcnt) gives the position of the next ones. No
// branch depends on a symbol, only on the code of a quad.

// At least 57 bits from bit `at`.
HEADRACE_INLINE uint64_t bits_57(const uint8_t* bytes, uint64_t at) {
  uint64_t word;
  __builtin_memcpy(&word, bytes + (at >> 3), 8);
  return word >> (at & 7);
}

// At least 63 bits: both loads contain the eighth byte, with the same value.
HEADRACE_INLINE uint64_t bits_63(const uint8_t* bytes, uint64_t at) {
  uint64_t low;
  uint16_t high;
  __builtin_memcpy(&low, bytes + (at >> 3), 8);
  __builtin_memcpy(&high, bytes + (at >> 3) + 7, 2);
  const int shift = static_cast<int>(at & 7);
  return low >> shift | uint64_t{high} << (56 - shift);
}

// The next DC difference of a quad, `width` bits in two's complement.
template <class Bits>
HEADRACE_INLINE int dc_difference(const GroupState& group, int j, int width) {
  const uint64_t sign = uint64_t{1} << width >> 1;
  return static_cast<int>((Bits::low(bits_57(group.payload, group.at[j]), width) ^ sign) - sign);
}

// A block between its mask and its last plane.
struct BlockBits {
  const uint8_t* bytes;
  uint64_t at;
  uint64_t mask;  // the coefficients with at least the current number of bits
  uint64_t count;
};

// Reads the DC value, mask and signs, and returns the mask.
template <class Bits, bool kWide>
HEADRACE_INLINE uint64_t begin_block(GroupState& group, uint32_t quad, int j, BlockBits& b) {
  b.bytes = group.payload;
  b.at = group.at[j];
  const int width = static_cast<int>(quad >> kDcWidthAt & 15);
  group.dc += dc_difference<Bits>(group, j, width);
  b.at += width;
  const int last = static_cast<int>(quad >> (6 * j) & 63);
  b.mask = Bits::low(bits_63(b.bytes, b.at) << 1, last) | uint64_t{1} << last;
  b.mask &= ~uint64_t{1};
  b.at += last - (last > 0);
  b.count = Bits::count(b.mask);
  const uint64_t window = kWide ? bits_63(b.bytes, b.at) : bits_57(b.bytes, b.at);
  b.at += b.count;
  return Bits::spread(window, b.mask);
}

// The bits of one size; kSecond: loads again before the second part, the coefficients' bits
// (otherwise the first load has them).
template <class Bits, bool kWide, bool kSecond>
HEADRACE_INLINE uint64_t next_plane(BlockBits& b) {
  uint64_t window = kWide ? bits_63(b.bytes, b.at) : bits_57(b.bytes, b.at);
  const uint64_t next = Bits::spread(window, b.mask);
  b.at += b.count;
  if constexpr (kSecond) {
    window = kWide ? bits_63(b.bytes, b.at) : bits_57(b.bytes, b.at);
  } else {
    window >>= b.count;
  }
  b.count = Bits::count(next);
  b.at += b.count;
  const uint64_t plane = (b.mask & ~next) | Bits::spread(window, next);
  b.mask = next;
  return plane;
}

// Note [Four chains]
// Each of a quad's blocks is a dependency chain of loads, deposits and counts, in its own stream,
// so the four could overlap. If they are coded one after another they hardly do: instructions
// waiting on one block's chain fill the scheduler before the next block's arrive. So each step is
// done for all four blocks.

// The next plane of each block; block j's is written to to[8 * j].
template <class Bits, bool kWide, bool kSkip, bool kSecond>
HEADRACE_INLINE void next_planes(BlockBits (&blocks)[4], uint64_t* to) {
  HEADRACE_FOUR {
    const uint64_t plane = next_plane<Bits, kWide, kSecond>(blocks[j]);
    if constexpr (!kSkip) to[8 * j] = plane;
  }
}

// The planes of a quad with at most 9 sizes.
template <class Bits, bool kWide, bool kSkip>
HEADRACE_INLINE void unpack_quad(GroupState& group, uint32_t quad, int levels,
                                 const PlanePlace& place) {
  BlockBits blocks[4];
  uint64_t* to = place.set[0];
  HEADRACE_FOUR {
    const uint64_t signs = begin_block<Bits, kWide>(group, quad, j, blocks[j]);
    if constexpr (kSkip) continue;
    to[8 * j + 7] = signs;
    place.dc[j] = static_cast<int16_t>(group.dc);
  }
  const int low = levels < 8 ? levels : 8;
  int size = 2;
  for (; size <= low && size < 4; ++size) next_planes<Bits, kWide, kSkip, true>(blocks, to++);
  for (; size <= low; ++size) next_planes<Bits, kWide, kSkip, kWide>(blocks, to++);
  if (levels > 7) {
    to = place.set[1];
    if constexpr (!kSkip) {
      HEADRACE_FOUR to[8 * j + 7] = place.set[0][8 * j + 7];
    }
    for (; size <= levels; ++size) next_planes<Bits, kWide, kSkip, kWide>(blocks, to++);
  }
  HEADRACE_FOUR {
    if constexpr (!kSkip) to[8 * j] = blocks[j].mask;
    group.at[j] = blocks[j].at;
  }
  if constexpr (!kSkip) *place.levels = static_cast<uint8_t>(levels);
}

// Any number of sizes.
template <class Bits>
__attribute__((noinline)) void unpack_deep_quad(GroupState& group, uint32_t quad, bool skip,
                                                const PlanePlace& place) {
  const int code = static_cast<int>(quad >> kLevelCodeAt);
  const int levels = kLevelsOfCode[code];
  for (int j = 0; j < 4; ++j) {
    if (code == kEscape) {
      group.dc = static_cast<int16_t>(bits_57(group.payload, group.at[j]));
      group.at[j] += kEscapeDcBits;
    }
    BlockBits b;
    const uint64_t signs = begin_block<Bits, true>(group, quad, j, b);
    uint64_t plane[21] = {};
    for (int k = 0; k < levels - 1; ++k) plane[k] = next_plane<Bits, true, true>(b);
    plane[levels - 1] = b.mask;
    group.at[j] = b.at;
    if (skip) continue;
    place.dc[j] = static_cast<int16_t>(group.dc);
    for (int set = 0; set < 3; ++set) {
      uint64_t* const out = place.set[set] + 8 * j;
      for (int k = 0; k < 7; ++k) out[k] = plane[7 * set + k];
      out[7] = signs;
    }
  }
  if (!skip) *place.levels = static_cast<uint8_t>(levels);
}

template <class Bits>
HEADRACE_INLINE void unpack_dc_quad(GroupState& group, uint32_t quad, bool skip,
                                    const PlanePlace& place) {
  const int width = static_cast<int>(quad >> kDcWidthAt & 15);
  for (int j = 0; j < 4; ++j) {
    group.dc += dc_difference<Bits>(group, j, width);
    group.at[j] += width;
    if (!skip) place.dc[j] = static_cast<int16_t>(group.dc);
  }
  if (!skip) *place.levels = 0;
}

template <class Bits, bool kSkip>
HEADRACE_INLINE void unpack_any_quad(GroupState& group, uint32_t quad, const PlanePlace& place) {
  const int code = static_cast<int>(quad >> kLevelCodeAt);
  if ((quad & kLastMask) == 0 && code != kEscape) {
    return unpack_dc_quad<Bits>(group, quad, kSkip, place);
  }
  if (__builtin_expect(code < kFirstDeep, 1)) {
    return unpack_quad<Bits, false, kSkip>(group, quad, kLevelsOfCode[code], place);
  }
  if (code == kDense7 || code == kDense9) {
    return unpack_quad<Bits, true, kSkip>(group, quad, kLevelsOfCode[code], place);
  }
  return unpack_deep_quad<Bits>(group, quad, kSkip, place);
}

template <class Bits>
void unpack_quads(GroupState& group, const uint8_t* quads, int skip, int count, PlanePlace place) {
  uint32_t quad;
  for (int q = 0; q < skip; ++q) {
    __builtin_memcpy(&quad, quads + 4 * q, 4);
    unpack_any_quad<Bits, true>(group, quad, place);
  }
  for (int q = skip; q < skip + count; ++q) {
    __builtin_memcpy(&quad, quads + 4 * q, 4);
    unpack_any_quad<Bits, false>(group, quad, place);
    for (uint64_t*& set : place.set) set += 32;
    place.dc += 4;
    ++place.levels;
  }
}

}  // namespace
}  // namespace headrace
