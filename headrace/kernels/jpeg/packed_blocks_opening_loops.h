// SPDX-License-Identifier: Apache-2.0
// Coefficients of packed blocks, expanded from size to size by byte shuffles. Included by
// packed_blocks_compact_avx2.cc between its target pragmas, after packed_blocks_unpack_loops.h.
// Internal to kernels/.

namespace headrace {
namespace {

// Note [Compact blocks]
// A plane has one bit for each coefficient that the previous plane selected. Instead of spreading
// each plane over 64 positions, a block's coefficients stay without gaps, as in the stream. First
// the counts of all sizes are computed, which only takes masking and popcnt. Then, from the largest
// size down, the bytes of a size's coefficients become those of the next smaller size: a shuffle,
// whose indices are looked up by each 8 bits of the plane, opens gaps for the new ones. Two blocks
// share a register. The result has no gaps for zero coefficients; those are opened by the inverse
// transform's loads (packed_blocks_avx2.cc).
//
// With w(s) = value - (1 << s >> 2) for coefficients of at least s bits, the step down is
// w(s) = opened(w(s + 1)) + (1 + bit s - 2) * (1 << s >> 2): a gap, 0, is a coefficient of exactly
// s bits. Bytes hold 8 bits of it, of which the lower 7 and the sign correspond to a set of planes;
// if a quad has more levels, the upper bits are in separate bytes, which are processed likewise.

struct CompactBits {
  static int count(uint64_t mask) { return static_cast<int>(_mm_popcnt_u64(mask)); }
  static uint64_t low(uint64_t bits, int count) { return _bzhi_u64(bits, count); }
  static uint64_t spread(uint64_t bits, uint64_t mask) {  // only for what is rare in pictures
    uint64_t out = 0;
    for (; mask; mask = _blsr_u64(mask), bits >>= 1) out |= _blsi_u64(mask) & -(bits & 1);
    return out;
  }
};

constexpr int kMaxLevels = 9;  // of a compact quad
// Most blocks are short: at most kShort coefficients, kShortSecond of which have 2 bits or more.
// Two of these share a register. A long block, with up to kLongSecond, has a register of its own;
// the few with more go through memory.
constexpr uint64_t kShort = 32, kShortSecond = 16, kLongSecond = 32;

enum class Length : uint8_t { kShort, kLong, kDone };

// The planes of a quad, as stored in the stream.
struct QuadDraft {
  uint64_t signs[4], second[4];  // second: which coefficients have 2 bits or more
  // By number of bits; more: which coefficients with this many bits have a further bit.
  uint32_t more[kMaxLevels + 1][4];
  uint64_t bits[kMaxLevels + 1][2];  // of pairs of blocks
  Length length[4];
};

[[gnu::always_inline]] inline __m128i load_16(const void* from) {
  return _mm_loadu_si128(static_cast<const __m128i*>(from));
}

[[gnu::always_inline]] inline __m128i places_of_16(uint64_t mask) {
  const __m128i high =
      _mm_loadl_epi64(reinterpret_cast<const __m128i*>(kRanks.of[mask >> 8 & 255]));
  return _mm_add_epi8(load_16(kRanks.with_count[mask & 255]), _mm_slli_si128(high, 8));
}

HEADRACE_INLINE __m256i pair_of(__m128i low, __m128i high) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

// Bytes of 0 or -1 for 32 bits given in each half of `bytes`, eight output bytes per byte.
HEADRACE_INLINE __m256i minus_ones_of(__m256i bytes) {
  const __m256i bit = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201));
  return _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
}

HEADRACE_INLINE __m256i minus_ones_of_32(uint32_t bits) {
  const __m256i eights = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,  //
                                          2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
  return minus_ones_of(_mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int>(bits)), eights));
}

// Coefficients of at least a size: their low 8 bits, and the bits above the lowest 7.
struct Values {
  __m256i low, high;
};

// One size down: Note [Compact blocks]. `set` has -1 where the coefficients' bits are set.
HEADRACE_INLINE void add_size(Values& opened, __m256i set, int size) {
  const auto add = [&](__m256i& value, int by) {
    const __m256i unit = _mm256_set1_epi8(static_cast<char>(by));
    value = _mm256_add_epi8(_mm256_add_epi8(value, unit), _mm256_and_si256(set, unit));
  };
  add(opened.low, 1 << (size - 2));
  if (size > 8) add(opened.high, 1 << (size - 9));
  if (size == 8) opened.high = _mm256_add_epi8(opened.high, _mm256_set1_epi8(1));
}

HEADRACE_INLINE __m256i with_signs(__m256i value, uint32_t signs) {
  const __m256i minus = minus_ones_of_32(signs);
  return _mm256_sub_epi8(_mm256_xor_si256(value, minus), minus);
}

HEADRACE_INLINE __m256i places_of_32(uint32_t mask) {
  const __m128i base = _mm_set1_epi8(static_cast<char>(CompactBits::count(mask & 0xffff)));
  return pair_of(places_of_16(mask), _mm_add_epi8(places_of_16(mask >> 16), base));
}

// Stores 32 coefficients of a block with their signs: the lower 7 bits in the first set, the bits
// above in the second.
template <int kLevels>
HEADRACE_INLINE void place_signed(Values opened, uint32_t signs, const PlanePlace& place, int at) {
  __m256i low = _mm256_add_epi8(opened.low, _mm256_set1_epi8(1));
  if constexpr (kLevels > 7) {
    low = _mm256_and_si256(low, _mm256_set1_epi8(127));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(place.set[1] + at),
                        with_signs(opened.high, signs));
  }
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(place.set[0] + at), with_signs(low, signs));
}

// The coefficients of 2 or more bits of a pair of short blocks, one per half.
template <int kLevels>
HEADRACE_INLINE Values short_pair(const QuadDraft& draft, int pair) {
  const __m256i eights = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,  //
                                          4, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5);
  Values values{_mm256_setzero_si256(), _mm256_setzero_si256()};
#pragma GCC unroll 8
  for (int size = kLevels; size >= 2; --size) {
    if (size < kLevels) {
      const uint32_t* const more = draft.more[size] + 2 * pair;
      const __m256i places = pair_of(places_of_16(more[0]), places_of_16(more[1]));
      values.low = _mm256_shuffle_epi8(values.low, places);
      if (kLevels > 7) values.high = _mm256_shuffle_epi8(values.high, places);
    }
    const __m256i bits = _mm256_set1_epi64x(static_cast<int64_t>(draft.bits[size][pair]));
    add_size(values, minus_ones_of(_mm256_shuffle_epi8(bits, eights)), size);
  }
  return values;
}

template <int kLevels>
HEADRACE_INLINE void place_short(const QuadDraft& draft, int j, __m256i low, __m256i high,
                                 const PlanePlace& place) {
  const __m256i places = places_of_32(static_cast<uint32_t>(draft.second[j]));
  Values values{_mm256_shuffle_epi8(low, places), high};
  if (kLevels > 7) values.high = _mm256_shuffle_epi8(high, places);
  place_signed<kLevels>(values, static_cast<uint32_t>(draft.signs[j]), place, 8 * j);
}

// Looks up bytes at any of 32 positions. REQUIRES: no position in [32, kRankOfGap).
HEADRACE_INLINE __m256i shuffled_32(__m256i bytes, __m256i places) {
  const __m256i low = _mm256_permute2x128_si256(bytes, bytes, 0x00);
  const __m256i high = _mm256_permute2x128_si256(bytes, bytes, 0x11);
  return _mm256_or_si256(
      _mm256_shuffle_epi8(low, _mm256_adds_epu8(places, _mm256_set1_epi8(0x70))),
      _mm256_shuffle_epi8(high, _mm256_sub_epi8(places, _mm256_set1_epi8(0x10))));
}

template <int kLevels>
HEADRACE_INLINE Values opened_32(const Values& values, __m256i places) {
  Values opened{shuffled_32(values.low, places), values.high};
  if (kLevels > 7) opened.high = shuffled_32(values.high, places);
  return opened;
}

template <int kLevels>
HEADRACE_INLINE void place_long(const QuadDraft& draft, int j, const PlanePlace& place) {
  Values values{_mm256_setzero_si256(), _mm256_setzero_si256()};
#pragma GCC unroll 8
  for (int size = kLevels; size >= 2; --size) {
    if (size < kLevels) values = opened_32<kLevels>(values, places_of_32(draft.more[size][j]));
    const auto bits = static_cast<uint32_t>(draft.bits[size][j / 2] >> (32 * (j % 2)));
    add_size(values, minus_ones_of_32(bits), size);
  }
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    const uint64_t second = draft.second[j];
    __m256i places = places_of_32(static_cast<uint32_t>(second >> (32 * half)));
    if (half) {
      const int before = CompactBits::count(second & 0xffffffff);
      places = _mm256_add_epi8(places, _mm256_set1_epi8(static_cast<char>(before)));
    }
    place_signed<kLevels>(opened_32<kLevels>(values, places),
                          static_cast<uint32_t>(draft.signs[j] >> (32 * half)), place,
                          8 * j + 4 * half);
  }
}

// Looks up bytes at any of 64 positions.
HEADRACE_INLINE __m256i shuffled_64(const __m256i bytes[2], __m256i places) {
  const __m256i thirty_one = _mm256_set1_epi8(31), second = _mm256_cmpgt_epi8(places, thirty_one);
  return _mm256_or_si256(_mm256_andnot_si256(second, shuffled_32(bytes[0], places)),
                         shuffled_32(bytes[1], _mm256_sub_epi8(places, _mm256_set1_epi8(32))));
}

// A block with more coefficients of 2 bits than fit a register; `b` is positioned after its signs.
template <bool kWide, int kLevels>
__attribute__((noinline)) uint64_t place_longest(BlockBits b, uint64_t signs,
                                                 const PlanePlace& place, int j) {
  uint64_t more[kMaxLevels + 2] = {}, bit[kMaxLevels + 1] = {};
  uint64_t count[kMaxLevels + 2] = {0, b.count};  // of coefficients with at least this many bits
  const auto look = [&] { return kWide ? bits_63(b.bytes, b.at) : bits_57(b.bytes, b.at); };
  for (int size = 2; size <= kLevels; ++size) {
    uint64_t window = look();
    more[size] = CompactBits::low(window, static_cast<int>(b.count));
    b.at += b.count;
    window = kWide || size < 4 ? look() : window >> b.count;
    b.count = count[size] = static_cast<uint64_t>(CompactBits::count(more[size]));
    bit[size] = window;
    b.at += b.count;
  }
  __m256i low[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()}, high[2] = {low[0], low[0]};
#pragma GCC unroll 9
  for (int size = kLevels; size >= 1; --size) {
    const uint64_t larger = more[size + 1];
    // Few coefficients of the larger sizes remain, so one register holds them.
    const auto open = [&, from_one = count[size + 1] <= 32](const __m256i bytes[2],
                                                            __m256i places) {
      return from_one ? shuffled_32(bytes[0], places) : shuffled_64(bytes, places);
    };
    Values opened[2] = {{low[0], high[0]}, {low[1], high[1]}};
    for (int half = 0; half < (count[size] > 32 ? 2 : 1); ++half) {
      __m256i places = places_of_32(static_cast<uint32_t>(larger >> (32 * half)));
      if (half) {
        const int before = CompactBits::count(larger & 0xffffffff);
        places = _mm256_add_epi8(places, _mm256_set1_epi8(static_cast<char>(before)));
      }
      if (size < kLevels) opened[half].low = open(low, places);
      if (size < kLevels && kLevels > 7) opened[half].high = open(high, places);
      if (size > 1) {
        add_size(opened[half], minus_ones_of_32(static_cast<uint32_t>(bit[size] >> (32 * half))),
                 size);
      } else {
        place_signed<kLevels>(opened[half], static_cast<uint32_t>(signs >> (32 * half)), place,
                              8 * j + 4 * half);
      }
    }
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      low[half] = opened[half].low;
      high[half] = opened[half].high;
    }
  }
  return b.at;
}

}  // namespace
}  // namespace headrace
