// SPDX-License-Identifier: Apache-2.0
//
// Note [Whole numbers that blend as floats]: Pillow computes other + factor * difference in
// float32, which takes three conversions in 32-bit lanes. Unless rounding moves the sum across an
// integer, the result is other + floor(rounded factor * difference); and usually a line with
// integer coefficients has the same floors for all 511 differences. Such a line is searched for,
// and verified at each difference. Factors that have none (one in a few hundred; one in seven of
// the multiples of 0.01) are blended in floats.
#ifndef HEADRACE_LEVEL

#include <algorithm>
#include <cmath>

#include "headrace/kernels/color/color_rows.h"

namespace headrace {
namespace {

constexpr int kBlendShift = 21;  // fraction bits of PillowBlend's numbers
// The slope is split into two 15-bit factors, one of them for 128 times the difference.
constexpr int kBlendLowBits = 7;

}  // namespace

namespace scalar {
namespace {

void in_floats(const uint8_t* value, const uint8_t* other, int count, float factor, uint8_t* out) {
  for (int i = 0; i < count; ++i) out[i] = blend_as_pillow(value[i], other[i], factor);
}

void in_numbers(const uint8_t* value, const uint8_t* other, int count, const PillowBlend& blend,
                uint8_t* out) {
  in_floats(value, other, count, blend.factor, out);
}

}  // namespace
}  // namespace scalar
}  // namespace headrace

#define HEADRACE_OWN_SCALAR
#define HEADRACE_KERNEL "headrace/kernels/color/blend_rows.cc"
#include "headrace/kernels/each_level.h"

namespace headrace {

PillowBlend pillow_blend(float factor) {
  PillowBlend blend{.factor = factor};
  if (!(factor >= 0 && factor < 2)) return blend;
  constexpr int kOne = 1 << kBlendShift;
  constexpr float kHalfUlp = 1.0f / (1 << 17);  // half the distance of float32 numbers between 128
                                                // and 256
  const int slope = std::min(static_cast<int>(std::lrint(factor * kOne)), 2 * kOne - 1);
  int least = 0, most = kOne;  // range of offsets consistent with all differences so far
  for (int difference = 1; difference < 256; ++difference) {
    const float product = factor * static_cast<float>(difference);
    const int floor = static_cast<int>(product);
    const float above = product - static_cast<float>(floor);
    const int ceiling = floor + (above > 0);
    if (above > 0 && (above <= kHalfUlp || 1 - above <= kHalfUlp)) return blend;
    // Bounds for the difference and its negative: the floored value is in [floor, floor + 1), and
    // likewise for -ceiling.
    const int along = slope * difference - floor * kOne;
    const int against = ceiling * kOne - slope * difference;
    least = std::max({least, -along, -against});
    most = std::min({most, kOne - 1 - along, kOne - 1 - against});
  }
  if (least > most) return blend;
  blend.slope = slope;
  blend.offset = least;
  return blend;
}

// REQUIRES for in_numbers: the blend has an integer form.
void blend_row_as_pillow(const uint8_t* value, const uint8_t* other, int count,
                         const PillowBlend& blend, uint8_t* out) {
  if (blend.offset == PillowBlend::kNone) {
    return HEADRACE_BY_LEVEL(in_floats)(value, other, count, blend.factor, out);
  }
  HEADRACE_BY_LEVEL(in_numbers)(value, other, count, blend, out);
}

}  // namespace headrace

#else  // at each SIMD level

#include HEADRACE_LANES

namespace headrace::HEADRACE_LEVEL {
namespace {

void in_floats(const uint8_t* value, const uint8_t* other, int count, float factor, uint8_t* out) {
  const Floats own = Set(factor);
  for (int i = 0; i < count; i += kLanes) {
    const Floats rest = LoadBytesAsFloats(other + i);
    StoreTruncated(out + i, Add(rest, Mul(own, Sub(LoadBytesAsFloats(value + i), rest))));
  }
}

void in_numbers(const uint8_t* value, const uint8_t* other, int count, const PillowBlend& blend,
                uint8_t* out) {
  const Words offset = SetInts(blend.offset);
  const Words slope =
      SetWordPairs(blend.slope >> kBlendLowBits, blend.slope & ((1 << kBlendLowBits) - 1));
  const auto drawn = [&](Words own, Words rest) {
    const Words away = SubWords(own, rest), much = ShiftLeftWords<kBlendLowBits>(away);
    const auto part = [&](Words pairs) {
      return ShiftRightInts<kBlendShift>(AddInts(WidenMulPairwiseAdd(pairs, slope), offset));
    };
    const Words by =
        DemoteToWords(part(InterleaveLowWords(much, away)), part(InterleaveHighWords(much, away)));
    return AddWords(rest, by);
  };
  for (int i = 0; i < count; i += kByteLanes) {
    const Words own = LoadBytes(value + i), rest = LoadBytes(other + i);
    StoreWordsAsBytes(out + i, drawn(LowWords(own), LowWords(rest)),
                      drawn(HighWords(own), HighWords(rest)));
  }
}

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL

#endif
