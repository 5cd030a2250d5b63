// SPDX-License-Identifier: Apache-2.0
// The inverse DCT with NEON. Scalar reference: idct_block().
//
// NEON multiplies lanes by a lane and adds (SMLAL), and has no pair products, so the rows of a
// block, which are stored in pairs (Note [Order of a block]), are separated when loaded. A pass
// takes 36 multiplications for eight columns, as in libjpeg-turbo's jidctint-neon.c, and 22 if all
// rows below the fourth are zero, which is tested for two blocks together. Two blocks share the
// transposition of their samples, 24 instructions, and eight stores of 16 bytes.
#include "headrace/kernels/jpeg/idct_levels.h"

#if defined(__aarch64__)

#include <arm_neon.h>

namespace headrace {
namespace {

// Factors, indexed by lane of two vectors.
constexpr int kOneAt = 0, kEven2Of2At = 1, kEven2Of6At = 2, kEven3Of2At = 3, kTurn3At = 4,
              kTurn4At = 5, kBothAt = 6, kOdd1Of5At = 7;
constexpr int kOdd0Of7At = 0, kOdd03At = 1, kOdd2Of3At = 2, kOdd12At = 3, kOdd3Of1At = 4;
alignas(16) constexpr int16_t kFactors[16] = {
    1 << kIdctBits,  kF0541,  kF0541 - kF1847, kF0541 + kF0765, kF1175 - kF1961,
    kF1175 - kF0390, kF1175,  kF2053 - kF2562, kF0298 - kF0899, -kF0899,
    kF3072 - kF2562, -kF2562, kF1501 - kF0899};

struct IdctFactors {
  int16x8_t first = vld1q_s16(kFactors), second = vld1q_s16(kFactors + 8);
};

// Rows of one block, or columns: x[i] holds the eight values of row i.
struct IdctRows {
  int16x8_t x[8];
};

// For the lower or upper four lanes.
template <bool kUpper, int kLane>
[[gnu::always_inline]] inline int32x4_t times(int16x8_t x, int16x8_t factors) {
  if constexpr (kUpper) return vmull_high_laneq_s16(x, factors, kLane);
  return vmull_laneq_s16(vget_low_s16(x), factors, kLane);
}
template <bool kUpper, int kLane>
[[gnu::always_inline]] inline int32x4_t plus_times(int32x4_t sum, int16x8_t x, int16x8_t factors) {
  if constexpr (kUpper) return vmlal_high_laneq_s16(sum, x, factors, kLane);
  return vmlal_laneq_s16(sum, vget_low_s16(x), factors, kLane);
}

// One dimension of four columns, as result i = even[i] + odd[i], result 7 - i = even[i] - odd[i].
struct IdctSums {
  int32x4_t even[4], odd[4];
};

// kFour: rows 4 to 7 are zero. All 16-bit and 32-bit sums wrap.
template <bool kFour, bool kUpper>
[[gnu::always_inline]] inline IdctSums idct_sums(const IdctRows& r, const IdctFactors& f,
                                                 int32x4_t round) {
  const int16x8_t* const x = r.x;
  IdctSums s;
  int32x4_t even0, even1, even2, even3, turn3, turn4;
  even2 = times<kUpper, kEven2Of2At>(x[2], f.first);
  even3 = times<kUpper, kEven3Of2At>(x[2], f.first);
  if constexpr (kFour) {
    even0 = even1 = plus_times<kUpper, kOneAt>(round, x[0], f.first);
    turn3 = plus_times<kUpper, kBothAt>(times<kUpper, kTurn3At>(x[3], f.first), x[1], f.first);
    turn4 = plus_times<kUpper, kTurn4At>(times<kUpper, kBothAt>(x[3], f.first), x[1], f.first);
    s.odd[3] = plus_times<kUpper, kOdd03At>(turn3, x[1], f.second);
    s.odd[2] = plus_times<kUpper, kOdd12At>(turn4, x[3], f.second);
    s.odd[1] = plus_times<kUpper, kOdd2Of3At>(turn3, x[3], f.second);
    s.odd[0] = plus_times<kUpper, kOdd3Of1At>(turn4, x[1], f.second);
  } else {
    even0 = plus_times<kUpper, kOneAt>(round, vaddq_s16(x[0], x[4]), f.first);
    even1 = plus_times<kUpper, kOneAt>(round, vsubq_s16(x[0], x[4]), f.first);
    even2 = plus_times<kUpper, kEven2Of6At>(even2, x[6], f.first);
    even3 = plus_times<kUpper, kEven2Of2At>(even3, x[6], f.first);
    const int16x8_t z3 = vaddq_s16(x[3], x[7]), z4 = vaddq_s16(x[1], x[5]);
    turn3 = plus_times<kUpper, kBothAt>(times<kUpper, kTurn3At>(z3, f.first), z4, f.first);
    turn4 = plus_times<kUpper, kTurn4At>(times<kUpper, kBothAt>(z3, f.first), z4, f.first);
    s.odd[3] = plus_times<kUpper, kOdd03At>(plus_times<kUpper, kOdd0Of7At>(turn3, x[7], f.second),
                                            x[1], f.second);
    s.odd[2] = plus_times<kUpper, kOdd12At>(plus_times<kUpper, kOdd1Of5At>(turn4, x[5], f.first),
                                            x[3], f.second);
    s.odd[1] = plus_times<kUpper, kOdd12At>(plus_times<kUpper, kOdd2Of3At>(turn3, x[3], f.second),
                                            x[5], f.second);
    s.odd[0] = plus_times<kUpper, kOdd03At>(plus_times<kUpper, kOdd3Of1At>(turn4, x[1], f.second),
                                            x[7], f.second);
  }
  s.even[0] = vaddq_s32(even0, even3);
  s.even[1] = vaddq_s32(even1, even2);
  s.even[2] = vsubq_s32(even1, even2);
  s.even[3] = vsubq_s32(even0, even3);
  return s;
}

// The first pass, on products of coefficients and steps: columns stay in place.
template <bool kFour>
[[gnu::always_inline]] inline void first_pass_neon(IdctRows& r, const IdctFactors& f) {
  const int32x4_t round = vdupq_n_s32(kIdctRound1);
  const IdctSums low = idct_sums<kFour, false>(r, f, round);
  const IdctSums high = idct_sums<kFour, true>(r, f, round);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r.x[i] = vqshrn_high_n_s32(vqshrn_n_s32(vaddq_s32(low.even[i], low.odd[i]), kIdctShift1),
                               vaddq_s32(high.even[i], high.odd[i]), kIdctShift1);
    r.x[7 - i] = vqshrn_high_n_s32(vqshrn_n_s32(vsubq_s32(low.even[i], low.odd[i]), kIdctShift1),
                                   vsubq_s32(high.even[i], high.odd[i]), kIdctShift1);
  }
}

// The second pass: the upper halves of the sums, for each column of a block's eight rows.
[[gnu::always_inline]] inline void second_pass_neon(IdctRows& c, const IdctFactors& f) {
  const int32x4_t round = vdupq_n_s32(kIdctRound2);
  const IdctSums low = idct_sums<false, false>(c, f, round);
  const IdctSums high = idct_sums<false, true>(c, f, round);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    c.x[i] = vaddhn_high_s32(vaddhn_s32(low.even[i], low.odd[i]), high.even[i], high.odd[i]);
    c.x[7 - i] = vsubhn_high_s32(vsubhn_s32(low.even[i], low.odd[i]), high.even[i], high.odd[i]);
  }
}

// Rows of columns in kIdctOrder -> columns in natural order.
[[gnu::always_inline]] inline void transpose_words(IdctRows& r) {
  int16x8_t pair[8];
  int32x4_t four[8];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    pair[2 * i] = vtrn1q_s16(r.x[2 * i], r.x[2 * i + 1]);
    pair[2 * i + 1] = vtrn2q_s16(r.x[2 * i], r.x[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {  // pairs 0 and 2, 1 and 3, 4 and 6, 5 and 7
    const int at = i / 2 * 4 + i % 2;
    const int32x4_t a = vreinterpretq_s32_s16(pair[at]), b = vreinterpretq_s32_s16(pair[at + 2]);
    four[at] = vtrn1q_s32(a, b);
    four[at + 2] = vtrn2q_s32(a, b);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const int64x2_t a = vreinterpretq_s64_s32(four[i]), b = vreinterpretq_s64_s32(four[i + 4]);
    r.x[kIdctOrder[i]] = vreinterpretq_s16_s64(vtrn1q_s64(a, b));
    r.x[kIdctOrder[i + 4]] = vreinterpretq_s16_s64(vtrn2q_s64(a, b));
  }
}

// Columns of two blocks -> rows of 16 samples.
[[gnu::always_inline]] inline void store_samples(const IdctRows& a, const IdctRows& b, uint8_t* out,
                                                 ptrdiff_t stride) {
  constexpr int kLeft = kIdctShift2 - 16;
  int8x16_t column[8];
  int16x8_t pair[8];
  int32x4_t four[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    column[i] = vqshrn_high_n_s16(vqshrn_n_s16(a.x[i], kLeft), b.x[i], kLeft);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    pair[2 * i] = vreinterpretq_s16_s8(vtrn1q_s8(column[2 * i], column[2 * i + 1]));
    pair[2 * i + 1] = vreinterpretq_s16_s8(vtrn2q_s8(column[2 * i], column[2 * i + 1]));
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const int at = i / 2 * 4 + i % 2;
    four[at] = vreinterpretq_s32_s16(vtrn1q_s16(pair[at], pair[at + 2]));
    four[at + 2] = vreinterpretq_s32_s16(vtrn2q_s16(pair[at], pair[at + 2]));
  }
  const auto store = [&](int row, int32x4_t samples) {
    vst1q_u8(out + row * stride, veorq_u8(vreinterpretq_u8_s32(samples), vdupq_n_u8(0x80)));
  };
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    store(i, vtrn1q_s32(four[i], four[i + 4]));
    store(i + 4, vtrn2q_s32(four[i], four[i + 4]));
  }
}

// Rows 0 to 7 of a block, or of its quantization steps, with columns in kIdctOrder.

[[gnu::always_inline]] inline IdctRows rows_of_words(const int16_t* words) {
  IdctRows r;
#pragma GCC unroll 4
  for (int pair = 0; pair < 4; ++pair) {
    const int16x8x2_t rows = vld2q_s16(words + 16 * pair);
    r.x[kIdctOrder[2 * pair]] = rows.val[0];
    r.x[kIdctOrder[2 * pair + 1]] = rows.val[1];
  }
  return r;
}

[[gnu::always_inline]] inline bool any_bit(int16x8_t v) {
  return vmaxvq_u32(vreinterpretq_u32_s16(v)) != 0;
}

// Note [Where the first row wraps]
[[gnu::always_inline]] inline bool is_beyond(int16x8_t a, int16x8_t b) {
  const int16x8_t limit = vdupq_n_s16(8192);
  const int16x8_t sums = vorrq_s16(vaddq_s16(a, limit), vaddq_s16(b, limit));
  return any_bit(vandq_s16(sums, vdupq_n_s16(static_cast<int16_t>(0xc000))));
}

void idct_row_vectors(const IdctTable& table, const BlockRow& blocks, int count, uint8_t* out,
                      ptrdiff_t stride) {
  BlockWalk walk(blocks);
  const IdctFactors factors;
  alignas(16) int16_t step_words[64];
  for (int i = 0; i < 64; ++i) step_words[i] = table.step[i / 8 * 32 + i % 8];
  const IdctRows step = rows_of_words(step_words);
  for (int done = 0; done < count; done += 2, out += 16) {
    const int16_t* const a_words = walk.next();
    const int16_t* const b_words = done + 1 < count ? walk.next() : a_words;
    IdctRows a = rows_of_words(a_words), b = rows_of_words(b_words);
    int16x8_t below = vdupq_n_s16(0);
#pragma GCC unroll 4
    for (int row = 4; row < 8; ++row) below = vorrq_s16(below, vorrq_s16(a.x[row], b.x[row]));
#pragma GCC unroll 8
    for (int row = 0; row < 8; ++row) {
      a.x[row] = vmulq_s16(a.x[row], step.x[row]);
      b.x[row] = vmulq_s16(b.x[row], step.x[row]);
    }
    if (__builtin_expect(is_beyond(a.x[0], b.x[0]), 0)) {
      idct_block(a_words, table.step.data(), out, stride);
      idct_block(b_words, table.step.data(), out + 8, stride);
      continue;
    }
    if (any_bit(below)) {
      first_pass_neon<false>(a, factors);
      first_pass_neon<false>(b, factors);
    } else {
      first_pass_neon<true>(a, factors);
      first_pass_neon<true>(b, factors);
    }
    transpose_words(a);
    second_pass_neon(a, factors);
    transpose_words(b);
    second_pass_neon(b, factors);
    store_samples(a, b, out, stride);
  }
}

}  // namespace

IdctRow idct_row_neon() { return idct_row_vectors; }

}  // namespace headrace

#else

namespace headrace {
IdctRow idct_row_neon() { return nullptr; }
}  // namespace headrace

#endif
