// SPDX-License-Identifier: Apache-2.0
// Planes -> samples with AVX2. Scalar reference: coefficients_of_planes() and idct_block().
#include "headrace/kernels/jpeg/idct_core_avx2.h"
#include "headrace/kernels/jpeg/packed_blocks_levels.h"
#include "headrace/kernels/jpeg/packed_blocks_order.h"
#include "headrace/kernels/jpeg/packed_blocks_ranks.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <utility>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx2");

namespace headrace {
namespace {

// Shuffle indices from the q-th 16 bytes in zigzag order to the i-th 16 in byte order.
struct alignas(64) Quarters {
  uint8_t from[4][4][16]{};
};
constexpr Quarters kQuarters = [] {
  Quarters table;
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    for (int q = 0; q < 4; ++q) {
      for (int byte = 0; byte < 16; ++byte) {
        const int k = kZigzagOfByte.zigzag[16 * i + byte];
        table.from[i][q][byte] = static_cast<uint8_t>(k / 16 == q ? k % 16 : 0x80);
      }
    }
  }
  return table;
}();

// Signed bytes of two blocks in zigzag order, 16 of each per register -> words in the order of the
// inverse transform.
[[gnu::always_inline]] inline void words_of_bytes(const __m256i quarter[4], IdctTwo& two) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    __m256i sixteen = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) {
      const __m256i from = _mm256_broadcastsi128_si256(
          _mm_load_si128(reinterpret_cast<const __m128i*>(kQuarters.from[i][q])));
      sixteen = _mm256_or_si256(sixteen, _mm256_shuffle_epi8(quarter[q], from));
    }
    two.group[2 * i] = _mm256_srai_epi16(_mm256_slli_epi16(sixteen, 8), 8);
    two.group[2 * i + 1] = _mm256_srai_epi16(sixteen, 8);
  }
}

// Byte offset of each group of eight coefficients within a compact block.
inline uint64_t begins_of_eights(uint64_t mask) {
  uint64_t count = mask - (mask >> 1 & 0x5555555555555555);
  count = (count & 0x3333333333333333) + (count >> 2 & 0x3333333333333333);
  count = (count + (count >> 4)) & 0x0f0f0f0f0f0f0f0f;
  return (count * 0x0101010101010101) << 8;
}

// Two compact blocks: Note [Compact blocks].
[[gnu::always_inline]] inline void words_of_compact(const uint64_t* values, const uint64_t* masks,
                                                    IdctTwo& two) {
  const uint64_t begins[2] = {begins_of_eights(masks[0]), begins_of_eights(masks[8])};
  const auto sixteen = [&](int block, int q) {
    const auto* const from = reinterpret_cast<const uint8_t*>(values + 8 * block);
    const uint64_t mask = masks[8 * block] >> (16 * q), begin = begins[block] >> (16 * q);
    const auto eight = [](const void* at) {
      return _mm_loadl_epi64(static_cast<const __m128i*>(at));
    };
    const auto and_eight = [](__m128i low, const void* at) {
      return _mm_castps_si128(_mm_loadh_pi(_mm_castsi128_ps(low), static_cast<const __m64*>(at)));
    };
    const __m128i bytes = and_eight(eight(from + (begin & 255)), from + (begin >> 8 & 255));
    const __m128i places =
        and_eight(eight(kRanks.of[mask & 255]), kRanks.behind_eight[mask >> 8 & 255]);
    return std::pair{bytes, places};
  };
  __m256i quarter[4];
#pragma GCC unroll 4
  for (int q = 0; q < 4; ++q) {
    const auto [bytes_0, places_0] = sixteen(0, q);
    const auto [bytes_1, places_1] = sixteen(1, q);
    quarter[q] =
        _mm256_shuffle_epi8(_mm256_inserti128_si256(_mm256_castsi128_si256(bytes_0), bytes_1, 1),
                            _mm256_inserti128_si256(_mm256_castsi128_si256(places_0), places_1, 1));
  }
  words_of_bytes(quarter, two);
}

// A pair of planes of each of two blocks, one block per lane.
[[gnu::always_inline]] inline __m256i two_planes(const uint64_t* planes, int pair) {
  const auto at = [&](int block) {
    return _mm_load_si128(reinterpret_cast<const __m128i*>(planes + 8 * block + 2 * pair));
  };
  return _mm256_inserti128_si256(_mm256_castsi128_si256(at(0)), at(1), 1);
}

// Note [Planes to words]
// A shuffle gives word w of group v the bytes of two planes that contain its coefficient's bit, so
// the order of the inverse transform costs nothing. All other bits are masked away, and a product
// with the planes' weights adds the two; a bit at position b of its byte makes the result 2^b times
// too large. The last plane holds the signs: where it is set the other bits are inverted, and its
// weight is the negated sum of theirs.
struct alignas(32) PlaneWords {
  uint8_t from[8][32]{};   // of a pair of planes
  uint8_t bit[8][32]{};    // mask of the bits to keep
  int16_t of_64[8][16]{};  // times 64, then the high words; weights are 4 times as large
  int16_t to_256[8][16]{};
};
constexpr PlaneWords kPlaneWords = [] {
  PlaneWords words;
#pragma GCC unroll 8
  for (int v = 0; v < 8; ++v) {
    for (int w = 0; w < 16; ++w) {
      const int k = kZigzagOfByte.zigzag[16 * (v / 2) + 2 * (w % 8) + v % 2];
      words.from[v][2 * w] = static_cast<uint8_t>(k / 8);
      words.from[v][2 * w + 1] = static_cast<uint8_t>(k / 8 + 8);
      words.bit[v][2 * w] = words.bit[v][2 * w + 1] = static_cast<uint8_t>(1 << k % 8);
      words.of_64[v][w] = static_cast<int16_t>(1 << (14 - k % 8));
      words.to_256[v][w] = static_cast<int16_t>(1 << (8 - k % 8));
    }
  }
  return words;
}();

// By levels: the weights of the pairs of planes, the signs in the last one.
struct PlaneWeights {
  int16_t pair[8][4]{};
};
constexpr PlaneWeights kPlaneWeights = [] {
  PlaneWeights weights;
  for (int levels = 1; levels < 8; ++levels) {
    const int pairs = levels / 2 + 1, unit = pairs < 4 ? 4 : 1;
    for (int p = 0; p < pairs; ++p) {
      const int even = 2 * p < levels ? unit << 2 * p : 0;
      const int odd = p + 1 < pairs ? unit << (2 * p + 1) : -unit * ((1 << levels) - 1);
      weights.pair[levels][p] = static_cast<int16_t>((even & 255) | (odd & 255) << 8);
    }
  }
  return weights;
}();

inline __m256i load(const void* from) {
  return _mm256_load_si256(static_cast<const __m256i*>(from));
}

// kPairs: levels / 2 + 1.
template <int kPairs>
[[gnu::always_inline]] inline void words_of_pairs(const uint64_t* planes, int levels,
                                                  IdctTwo& two) {
  const __m256i last = two_planes(planes, 3);
  const __m256i signs = _mm256_unpackhi_epi64(last, last);
  __m256i pair[kPairs], weight[kPairs];
#pragma GCC unroll 4
  for (int p = 0; p < kPairs; ++p) {
    pair[p] = _mm256_xor_si256(p < 3 ? two_planes(planes, p) : last, signs);
    weight[p] = _mm256_set1_epi16(kPlaneWeights.pair[levels][p]);
  }
  pair[kPairs - 1] = _mm256_blend_epi32(pair[kPairs - 1], signs, 0xcc);
#pragma GCC unroll 8
  for (int v = 0; v < 8; ++v) {
    __m256i sum = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (int p = 0; p < kPairs; ++p) {
      const __m256i bits = _mm256_and_si256(_mm256_shuffle_epi8(pair[p], load(kPlaneWords.from[v])),
                                            load(kPlaneWords.bit[v]));
      sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(bits, weight[p]));
    }
    if constexpr (kPairs < 4) {
      two.group[v] = _mm256_mulhi_epi16(sum, load(kPlaneWords.of_64[v]));
    } else {  // weights four times as large would not fit bytes
      two.group[v] = _mm256_srai_epi16(_mm256_mullo_epi16(sum, load(kPlaneWords.to_256[v])), 8);
    }
  }
}

// One set of planes of two blocks -> words in the order of the inverse transform.
[[gnu::always_inline]] inline void words_of_planes(const uint64_t* planes, int levels,
                                                   IdctTwo& two) {
  switch (levels) {
    case 1:
      return words_of_pairs<1>(planes, levels, two);
    case 2:
    case 3:
      return words_of_pairs<2>(planes, levels, two);
    case 4:
    case 5:
      return words_of_pairs<3>(planes, levels, two);
    default:
      return words_of_pairs<4>(planes, levels < 7 ? levels : 7, two);
  }
}

template <int kShift>
[[gnu::always_inline]] inline void add_shifted(const IdctTwo& high, IdctTwo& two) {
#pragma GCC unroll 8
  for (int v = 0; v < 8; ++v) {
    two.group[v] = _mm256_add_epi16(two.group[v], _mm256_slli_epi16(high.group[v], kShift));
  }
}

template <int kShift>
[[gnu::always_inline]] inline void add_words_of_planes(const uint64_t* planes, int levels,
                                                       IdctTwo& two) {
  IdctTwo high;
  words_of_planes(planes, levels - kShift, high);
  add_shifted<kShift>(high, two);
}

void idct(const IdctTable& table, const std::array<const uint64_t*, 3>& sets, const int16_t* dc,
          const uint8_t* levels, int quads, uint8_t* out, ptrdiff_t stride) {
  const int16_t dc_step = table.step[0];
  IdctTwos samples(table.step.data(), stride);
  for (int q = 0; q < quads; ++q, dc += 4, out += 32) {
    if (levels[q] == 0) {
      idct_dc_quad(dc, dc_step, out, stride);
      continue;
    }
    for (int half = 0; half < 2; ++half) {
      const int at = 32 * q + 16 * half;
      IdctTwo two;
      if (levels[q] & kCompactQuad) {
        words_of_compact(sets[0] + at, sets[2] + at, two);
        if (levels[q] > kCompactQuad + 7) {
          IdctTwo high;
          words_of_compact(sets[1] + at, sets[2] + at, high);
          add_shifted<7>(high, two);
        }
      } else {
        words_of_planes(sets[0] + at, levels[q], two);
        if (levels[q] > 7) add_words_of_planes<7>(sets[1] + at, levels[q], two);
        if (levels[q] > 14) add_words_of_planes<14>(sets[2] + at, levels[q], two);
      }
      two.group[0] = _mm256_insert_epi16(two.group[0], dc[2 * half], 0);
      two.group[0] = _mm256_insert_epi16(two.group[0], dc[2 * half + 1], 8);
      samples.add(two, out + 16 * half);
    }
  }
  samples.finish();
}

}  // namespace

IdctPlanes idct_planes_avx2() { return idct; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
IdctPlanes idct_planes_avx2() { return nullptr; }
}  // namespace headrace

#endif
