// SPDX-License-Identifier: Apache-2.0
#ifndef HEADRACE_LEVEL

#include "headrace/kernels/color/planar_color.h"

#include <algorithm>

#include "headrace/kernels/color/pixel_math.h"
#include "headrace/kernels/color/ycc_constants.h"

namespace headrace {
namespace scalar {
namespace {

uint8_t clamped(int value) { return static_cast<uint8_t>(std::clamp(value, 0, 255)); }

void rgb_from_ycc(const uint8_t* const ycc[3], int count, uint8_t* const rgb[3]) {
  constexpr int kRound = 1 << 15;
  for (int i = 0; i < count; ++i) {
    const int y = ycc[0][i], u = ycc[1][i] - 128, v = ycc[2][i] - 128;
    rgb[0][i] = clamped(y + ((91881 * v + kRound) >> 16));
    rgb[1][i] = clamped(y + ((-22554 * u - 46802 * v + kRound) >> 16));
    rgb[2][i] = clamped(y + ((116130 * u + kRound) >> 16));
  }
}

void gray_from_rgb(const uint8_t* const rgb[3], int count, uint8_t* gray) {
  for (int i = 0; i < count; ++i) {
    gray[i] = gray_as_pillow(rgb[0][i], rgb[1][i], rgb[2][i]);
  }
}

}  // namespace
}  // namespace scalar
}  // namespace headrace

#define HEADRACE_OWN_SCALAR
#define HEADRACE_NEON_KERNEL "headrace/kernels/color/planar_color_neon.h"
#define HEADRACE_KERNEL "headrace/kernels/color/planar_color.cc"
#include "headrace/kernels/each_level.h"

namespace headrace {

void rgb_from_ycc_rows(const uint8_t* const ycc[3], int count, uint8_t* const rgb[3]) {
  HEADRACE_BY_LEVEL(rgb_from_ycc)(ycc, count, rgb);
}

void gray_from_rgb_rows(const uint8_t* const rgb[3], int count, uint8_t* gray) {
  HEADRACE_BY_LEVEL(gray_from_rgb)(rgb, count, gray);
}

void rgb_from_cmy_rows(const uint8_t* const cmy[3], const uint8_t* white, int count,
                       uint8_t* const rgb[3]) {
  for (int c = 0; c < 3; ++c) {
    const uint8_t* const ink = cmy[c];
    uint8_t* const out = rgb[c];
    for (int i = 0; i < count; ++i) {
      // The ink removes its fraction of white; divided by 255 as Pillow does.
      const unsigned product = unsigned{ink[i]} * white[i] + 128;
      out[i] = static_cast<uint8_t>(white[i] - (((product >> 8) + product) >> 8));
    }
  }
}

void complement_row(const uint8_t* in, int count, uint8_t* out) {
  for (int i = 0; i < count; ++i) out[i] = static_cast<uint8_t>(255 - in[i]);
}

}  // namespace headrace

#else  // at each SIMD level of x86

#include HEADRACE_LANES

namespace headrace::HEADRACE_LEVEL {
namespace {

// The bytes of the low or the high half, each in a word with one byte of b.
inline Words unpacked(Words a, Words b, int half) {
  return half ? InterleaveHighBytes(a, b) : InterleaveLowBytes(a, b);
}

// Note [YCbCr in 16 bits]
void rgb_from_ycc(const uint8_t* const ycc[3], int count, uint8_t* const rgb[3]) {
  const Words center = SetBytePairs(0x80, 0x80), zero = SetWords(0);
  for (int i = 0; i < count; i += kByteLanes) {
    const Words luma = LoadBytes(ycc[0] + i);
    const Words u = Xor(LoadBytes(ycc[1] + i), center), v = Xor(LoadBytes(ycc[2] + i), center);
    Words red[2], green[2], blue[2];
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const Words y = unpacked(luma, zero, half), uv = unpacked(u, v, half);
      const auto sum = [&](short weights) { return MulPairwiseAddBytes(SetWords(weights), uv); };
      red[half] = AddWords(y, MulRoundedWords(sum(kRedPair), SetWords(kRedFactor)));
      blue[half] = AddWords(y, MulRoundedWords(sum(kBluePair), SetWords(kBlueFactor)));
      const Words low =
          ShiftRightSignedWords<8>(SubWords(SetWords(kGreenRound), sum(kGreenLowPair)));
      const Words offset = SubWords(low, sum(kGreenHighPair));
      green[half] = AddWords(y, ShiftRightSignedWords<7>(offset));
    }
    StoreWordsAsBytes(rgb[0] + i, red[0], red[1]);
    StoreWordsAsBytes(rgb[1] + i, green[0], green[1]);
    StoreWordsAsBytes(rgb[2] + i, blue[0], blue[1]);
  }
}

void gray_from_rgb(const uint8_t* const rgb[3], int count, uint8_t* gray) {
  const Words zero = SetWords(0), round = SetInts(kGrayRound);
  const Words red_green = SetWordPairs(kGrayRed, kGrayHalfGreen);
  const Words green_blue = SetWordPairs(kGrayHalfGreen, kGrayBlue);
  for (int i = 0; i < count; i += kByteLanes) {
    const Words r = LoadBytes(rgb[0] + i), g = LoadBytes(rgb[1] + i), b = LoadBytes(rgb[2] + i);
    Words words[2];
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const Words r16 = unpacked(r, zero, half), g16 = unpacked(g, zero, half),
                  b16 = unpacked(b, zero, half);
      const auto weighted = [&](Words rg, Words gb) {
        const Words sum =
            WidenMulPairwiseAddTo(WidenMulPairwiseAddTo(round, rg, red_green), gb, green_blue);
        return ShiftRightInts<16>(sum);
      };
      words[half] =
          DemoteToWords(weighted(InterleaveLowWords(r16, g16), InterleaveLowWords(g16, b16)),
                        weighted(InterleaveHighWords(r16, g16), InterleaveHighWords(g16, b16)));
    }
    StoreWordsAsBytes(gray + i, words[0], words[1]);
  }
}

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL

#endif
