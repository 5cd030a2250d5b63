// SPDX-License-Identifier: Apache-2.0
#ifndef HEADRACE_LEVEL

#include "headrace/kernels/jpeg/upsample.h"

#include <cstddef>
#include <cstring>

namespace headrace {

namespace scalar {
namespace {

void h2v1(const uint8_t* in, int count, uint8_t* out) {
  for (int i = 0; i < count; ++i) {
    out[2 * i] = static_cast<uint8_t>((3 * in[i] + in[i - 1] + 1) >> 2);
    out[2 * i + 1] = static_cast<uint8_t>((3 * in[i] + in[i + 1] + 2) >> 2);
  }
}

void h2v2(const uint8_t* near, const uint8_t* far, int count, uint8_t* out) {
  int before = 3 * near[-1] + far[-1], here = 3 * near[0] + far[0];
  for (int i = 0; i < count; ++i) {
    const int after = 3 * near[i + 1] + far[i + 1];
    out[2 * i] = static_cast<uint8_t>((3 * here + before + 8) >> 4);
    out[2 * i + 1] = static_cast<uint8_t>((3 * here + after + 7) >> 4);
    before = here;
    here = after;
  }
}

// bias: 1 for the upper output row, 2 for the lower one
void h1v2(const uint8_t* near, const uint8_t* far, int bias, int count, uint8_t* out) {
  for (int i = 0; i < count; ++i) {
    out[i] = static_cast<uint8_t>((3 * near[i] + far[i] + bias) >> 2);
  }
}

}  // namespace
}  // namespace scalar
}  // namespace headrace

#define HEADRACE_OWN_SCALAR
#define HEADRACE_NEON_KERNEL "headrace/kernels/jpeg/upsample_neon.h"
#define HEADRACE_KERNEL "headrace/kernels/jpeg/upsample.cc"
#include "headrace/kernels/each_level.h"

namespace headrace {

void upsample_h2v1(const uint8_t* in, int count, uint8_t* out) {
  HEADRACE_BY_LEVEL(h2v1)(in, count, out);
}

void upsample_h2v2(const uint8_t* near, const uint8_t* far, int count, uint8_t* out) {
  HEADRACE_BY_LEVEL(h2v2)(near, far, count, out);
}

void upsample_h1v2(const uint8_t* near, const uint8_t* far, bool lower, int count, uint8_t* out) {
  HEADRACE_BY_LEVEL(h1v2)(near, far, lower ? 2 : 1, count, out);
}

void upsample_repeat(const uint8_t* in, int count, int times, uint8_t* out) {
  // Writes four even if three or two are needed: the next sample overwrites the surplus.
  for (int i = 0; i < count; ++i, out += times) {
    const uint32_t four = in[i] * 0x01010101u;
    std::memcpy(out, &four, sizeof(four));
  }
}

}  // namespace headrace

#else  // at each SIMD level of x86

#include HEADRACE_LANES

namespace headrace::HEADRACE_LEVEL {
namespace {

// 3 * near + far as words, from the bytes of the low or the high halves.
inline Words weighted(Words near, Words far, int half) {
  return MulPairwiseAddBytes(half ? InterleaveHighBytes(near, far) : InterleaveLowBytes(near, far),
                             SetBytePairs(3, 1));
}

void h2v1(const uint8_t* in, int count, uint8_t* out) {
  for (int i = 0; i < count; i += kByteLanes) {
    const Words here = LoadBytes(in + i), before = LoadBytes(in + i - 1),
                after = LoadBytes(in + i + 1);
    Words doubled[2];
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const Words even = AddWords(weighted(here, before, half), SetWords(1));
      const Words odd = AddWords(weighted(here, after, half), SetWords(2));
      doubled[half] = OddEvenBytes(ShiftLeftWords<6>(odd), ShiftRightWords<2>(even));
    }
    StoreHalves(out + 2 * i, doubled[0], doubled[1]);
  }
}

void h2v2(const uint8_t* near, const uint8_t* far, int count, uint8_t* out) {
  ByteNeighbors near_row(near), far_row(far);
  for (int i = 0; i < count; i += kByteLanes) {
    near_row.move_to(near + i);
    far_row.move_to(far + i);
    Words doubled[2];
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const Words here = weighted(near_row.here, far_row.here, half);
      const Words before = weighted(near_row.before, far_row.before, half);
      const Words after = weighted(near_row.after, far_row.after, half);
      const Words thrice = AddWords(AddWords(here, here), here);
      const Words even = AddWords(AddWords(thrice, before), SetWords(8));
      const Words odd = AddWords(AddWords(thrice, after), SetWords(7));
      doubled[half] = OddEvenBytes(ShiftLeftWords<4>(odd), ShiftRightWords<4>(even));
    }
    StoreHalves(out + 2 * i, doubled[0], doubled[1]);
  }
}

void h1v2(const uint8_t* near, const uint8_t* far, int bias, int count, uint8_t* out) {
  const Words round = SetWords(bias);
  for (int i = 0; i < count; i += kByteLanes) {
    const Words a = LoadBytes(near + i), b = LoadBytes(far + i);
    StoreWordsAsBytes(out + i, ShiftRightWords<2>(AddWords(weighted(a, b, 0), round)),
                      ShiftRightWords<2>(AddWords(weighted(a, b, 1), round)));
  }
}

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL

#endif
