// SPDX-License-Identifier: Apache-2.0
#ifndef HEADRACE_LEVEL

#include <algorithm>

#include "headrace/kernels/filters/filter_rows.h"
#include "headrace/kernels/filters/sharpen_pixel.h"

namespace headrace {
namespace scalar {
namespace {

uint32_t blur_at(const ThreeRows& in, int x) {
  uint32_t sum = uint32_t{4} * in.row[x];
  for (const uint8_t* row : {in.above, in.row, in.below}) {
    sum += uint32_t{row[x - 1]} + row[x] + row[x + 1];
  }
  return thirteenth_of(sum);
}

// The blur of columns 1 to width - 2, written to `out` from its start. At vector levels: returns
// false and does nothing if the rows are too short for a vector.
bool blur(const ThreeRows& in, int width, uint8_t* out) {
  for (int x = 1; x < width - 1; ++x) out[x - 1] = static_cast<uint8_t>(blur_at(in, x));
  return true;
}

// Extrapolates each value away from the other one, as torch computes it. Vector code may read and
// write up to 63 bytes past `count`.
void extrapolate(const uint8_t* value, const uint8_t* other, int count, float rest, uint8_t* out) {
  for (int i = 0; i < count; ++i) {
    out[i] = static_cast<uint8_t>(extrapolated(value[i], other[i], rest));
  }
}

}  // namespace
}  // namespace scalar
}  // namespace headrace

#define HEADRACE_OWN_SCALAR
#define HEADRACE_KERNEL "headrace/kernels/filters/sharpen_rows.cc"
#include "headrace/kernels/each_level.h"

namespace headrace {
namespace {

// Calls blend(value, blur, count, out) for the inner columns, in parts whose blur fits in the L1
// cache.
template <class Blend>
void with_blur(const ThreeRows& in, int width, uint8_t* out, Blend&& blend) {
  constexpr int kColumns = 1024;
  uint8_t blur[kColumns + 63];
  for (int x = 1; x < width - 1; x += kColumns) {
    const int count = std::min(kColumns, width - 1 - x);
    const ThreeRows part{in.above + x - 1, in.row + x - 1, in.below + x - 1};
    if (!HEADRACE_BY_LEVEL(blur)(part, count + 2, blur)) scalar::blur(part, count + 2, blur);
    blend(in.row + x, blur, count, out + x);
  }
}

}  // namespace

void sharpen_row(const ThreeRows& in, int width, float rest, uint8_t* out) {
  with_blur(in, width, out, [&](const uint8_t* row, const uint8_t* blur, int count, uint8_t* to) {
    HEADRACE_BY_LEVEL(extrapolate)(row, blur, count, rest, to);
  });
}

void sharpen_row_as_pillow(const ThreeRows& in, int width, const PillowBlend& blend, uint8_t* out) {
  with_blur(in, width, out, [&](const uint8_t* row, const uint8_t* blur, int count, uint8_t* to) {
    blend_row_as_pillow(row, blur, count, blend, to);
  });
}

}  // namespace headrace

#else  // at each SIMD level

#include HEADRACE_LANES

namespace headrace::HEADRACE_LEVEL {
namespace {

Words thirteenth(Words total) {
  const Words twice = AddWords(AddWords(total, total), SetWords(13));
  return ShiftRightWords<kThirteenthShift>(MulHighWords(twice, SetWords(kThirteenthFactor)));
}

// The neighbors of bytes at even and odd positions are in the loads one byte before and one byte
// after: for even bytes, the odd bytes of the former; for odd bytes, the even bytes of the latter.
Words blur_at(const ThreeRows& in, int x) {
  const Words ones = SetBytePairs(1, 1);
  Words even = SetWords(0), odd = even;
  for (const uint8_t* row : {in.above, in.below}) {
    const Words before = LoadBytes(row + x - 1), after = LoadBytes(row + x + 1);
    even = AddWords(even, AddWords(MulPairwiseAddBytes(before, ones), EvenBytes(after)));
    odd = AddWords(odd, AddWords(OddBytes(before), MulPairwiseAddBytes(after, ones)));
  }
  const Words before = LoadBytes(in.row + x - 1), after = LoadBytes(in.row + x + 1);
  even =
      AddWords(even, AddWords(MulPairwiseAddBytes(before, SetBytePairs(1, 5)), EvenBytes(after)));
  odd = AddWords(odd, AddWords(OddBytes(before), MulPairwiseAddBytes(after, SetBytePairs(5, 1))));
  return InterleaveBytes(thirteenth(even), thirteenth(odd));
}

bool blur(const ThreeRows& in, int width, uint8_t* out) {
  const int count = width - 2;
  if (count < kByteLanes) return false;
  for (int i = 0; i < count; i += kByteLanes) {
    const int first = std::min(i, count - kByteLanes);  // the last vectors overlap
    StoreBytes(out + first, blur_at(in, 1 + first));
  }
  return true;
}

void extrapolate(const uint8_t* value, const uint8_t* other, int count, float rest, uint8_t* out) {
  for (int i = 0; i < count; i += kLanes) {
    const Floats own = LoadBytesAsFloats(value + i);
    StoreTruncated(out + i, MulAdd(Sub(LoadBytesAsFloats(other + i), own), Set(rest), own));
  }
}

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL

#endif
