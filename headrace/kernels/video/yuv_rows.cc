// SPDX-License-Identifier: Apache-2.0
//
// Note [Two columns to a sample of chroma]
// Luma at even and at odd columns is in the words of two registers, and the chroma contribution is
// the same for both: so no chroma sample is repeated, and its products are computed once for two
// pixels.
#ifndef HEADRACE_LEVEL

#include "headrace/kernels/video/yuv_rows.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>

namespace headrace {
namespace {
constexpr int kDeepShift = 21;  // of DeepYuvCoefficients
}

namespace scalar {
namespace {

uint8_t clamped(int value) { return static_cast<uint8_t>(std::clamp(value, 0, 255)); }

template <int columns>
void convert(const uint8_t* const yuv[3], int count, const YuvCoefficients& by,
             uint8_t* const rgb[3]) {
  for (int i = 0; i < count; ++i) {
    const int y = ((8 * yuv[0][i] - by.offset) * by.luma) >> 16;
    const int u = 8 * yuv[1][i / columns] - 1024, v = 8 * yuv[2][i / columns] - 1024;
    rgb[0][i] = clamped(y + ((v * by.red_v) >> 16));
    rgb[1][i] = clamped(y + ((u * by.green_u) >> 16) + ((v * by.green_v) >> 16));
    rgb[2][i] = clamped(y + ((u * by.blue_u) >> 16));
  }
}

// Samples that exceed their bit depth, which a faulty decoder may return, wrap around at every SIMD
// level.
template <int columns>
void convert_deep(const uint16_t* const yuv[3], int count, const DeepYuvCoefficients& by,
                  uint8_t* const rgb[3]) {
  const auto product = [](int sample, int coefficient) {
    return static_cast<uint32_t>(sample) * static_cast<uint32_t>(coefficient);
  };
  const auto rounded = [](uint32_t sum) {
    return clamped(static_cast<int32_t>(sum + (1u << (kDeepShift - 1))) >> kDeepShift);
  };
  for (int i = 0; i < count; ++i) {
    const uint32_t y = product(yuv[0][i] - by.luma_offset, by.luma);
    const int u = yuv[1][i / columns] - by.chroma_offset;
    const int v = yuv[2][i / columns] - by.chroma_offset;
    rgb[0][i] = rounded(y + product(v, by.red_v));
    rgb[1][i] = rounded(y + product(u, by.green_u) + product(v, by.green_v));
    rgb[2][i] = rounded(y + product(u, by.blue_u));
  }
}

}  // namespace
}  // namespace scalar
}  // namespace headrace

#define HEADRACE_OWN_SCALAR
#define HEADRACE_NO_NEON
#define HEADRACE_KERNEL "headrace/kernels/video/yuv_rows.cc"
#include "headrace/kernels/each_level.h"

namespace headrace {
namespace {

// Weights of red and blue in luma, from the standards: H.273, table 4.
struct LumaShares {
  double red, blue;
};
constexpr std::array<LumaShares, 5> kShares = {
    {{0.299, 0.114}, {0.2126, 0.0722}, {0.2627, 0.0593}, {0.212, 0.087}, {0.3, 0.11}}};

// libswscale's coefficients, times 2^16 * 255 / 224: V to red, U to blue, and what U and V subtract
// from green, for limited range. Not all are rounded to nearest.
constexpr std::array<std::array<int, 4>, 5> kSwscale = {{{104597, 132201, 25675, 53279},
                                                         {117489, 138438, 13975, 34925},
                                                         {110013, 140363, 12277, 42626},
                                                         {117579, 136230, 16907, 35559},
                                                         {104448, 132798, 24759, 53109}}};

}  // namespace

YuvCoefficients yuv_coefficients(YuvMatrix matrix, bool full_range) {
  const auto& [red_v, blue_u, green_u, green_v] = kSwscale[static_cast<size_t>(matrix)];
  // From 16 bits to 13, rounded.
  const auto short_of = [](int value) { return static_cast<int16_t>((value + 4) >> 3); };
  const auto chroma = [&](int value) {
    // truncated toward zero, even if negative
    return short_of(full_range ? value * 224 / 255 : value);
  };
  constexpr int kOne = 1 << 16;
  return {.luma = short_of(full_range ? kOne : kOne * 255 / 219),
          .offset = static_cast<int16_t>(full_range ? 0 : 8 * 16),
          .red_v = chroma(red_v),
          .green_u = chroma(-green_u),
          .green_v = chroma(-green_v),
          .blue_u = chroma(blue_u)};
}

DeepYuvCoefficients deep_yuv_coefficients(YuvMatrix matrix, bool full_range, int bits) {
  assert(9 <= bits && bits <= 16);
  const auto [red, blue] = kShares[static_cast<size_t>(matrix)];
  const double green = 1 - red - blue;
  const int scale = 1 << (bits - 8);
  const double most = full_range ? (1 << bits) - 1 : 219 * scale;  // luma range from black to white
  const double chroma = full_range ? most : 224 * scale;
  const auto fixed = [](double value) {
    return static_cast<int32_t>(std::lround(255 * value * (1 << kDeepShift)));
  };
  return {.luma = fixed(1 / most),
          .luma_offset = full_range ? 0 : 16 * scale,
          .chroma_offset = 128 * scale,
          .red_v = fixed(2 * (1 - red) / chroma),
          .green_u = fixed(-2 * (1 - blue) * blue / green / chroma),
          .green_v = fixed(-2 * (1 - red) * red / green / chroma),
          .blue_u = fixed(2 * (1 - blue) / chroma)};
}

void rgb_from_yuv_row(const uint8_t* const yuv[3], bool halved, int count,
                      const YuvCoefficients& by, uint8_t* const rgb[3]) {
  (halved ? HEADRACE_BY_LEVEL(convert<2>) : HEADRACE_BY_LEVEL(convert<1>))(yuv, count, by, rgb);
}

void rgb_from_deep_yuv_row(const uint16_t* const yuv[3], bool halved, int count,
                           const DeepYuvCoefficients& by, uint8_t* const rgb[3]) {
  (halved ? HEADRACE_BY_LEVEL(convert_deep<2>) : HEADRACE_BY_LEVEL(convert_deep<1>))(yuv, count, by,
                                                                                     rgb);
}

void bytes_from_deep_row(const uint16_t* in, int bits, int count, uint8_t* out) {
  const uint32_t most = (uint32_t{1} << bits) - 1;
  for (int i = 0; i < count; ++i) {
    out[i] = static_cast<uint8_t>((std::min<uint32_t>(in[i], most) * 510 + most) / (2 * most));
  }
}

}  // namespace headrace

#else  // at each SIMD level

#include HEADRACE_LANES

namespace headrace::HEADRACE_LEVEL {
namespace {

// The coefficients for 8-bit samples, broadcast to all lanes.
struct Coefficients {
  explicit Coefficients(const YuvCoefficients& by)
      : luma(SetWords(by.luma)),
        offset(SetWords(by.offset)),
        red_v(SetWords(by.red_v)),
        green_u(SetWords(by.green_u)),
        green_v(SetWords(by.green_v)),
        blue_u(SetWords(by.blue_u)) {}
  Words luma_of(Words eightfold) const {
    return MulHighSignedWords(SubWords(eightfold, offset), luma);
  }

  Words luma, offset, red_v, green_u, green_v, blue_u;
};

inline Words eightfold(const uint8_t* row) { return ShiftLeftWords<3>(LoadBytesAsWords(row)); }

// The contribution of a register of chroma words to red, green and blue.
struct Added {
  Added(const uint8_t* u_row, const uint8_t* v_row, const Coefficients& by) {
    const Words u = SubWords(eightfold(u_row), SetWords(1024)),
                v = SubWords(eightfold(v_row), SetWords(1024));
    of[0] = MulHighSignedWords(v, by.red_v);
    of[1] = AddWords(MulHighSignedWords(u, by.green_u), MulHighSignedWords(v, by.green_v));
    of[2] = MulHighSignedWords(u, by.blue_u);
  }

  Words of[3];
};

template <int columns>
void convert(const uint8_t* const yuv[3], int count, const YuvCoefficients& coefficients,
             uint8_t* const rgb[3]) {
  constexpr int kWords = kByteLanes / 2;
  const Coefficients by(coefficients);
  for (int i = 0; i < count; i += kByteLanes) {
    if constexpr (columns == 2) {
      const Added added(yuv[1] + i / 2, yuv[2] + i / 2, by);
      const Words luma = LoadBytes(yuv[0] + i), mask = SetWords(0xff << 3);
      const Words even = by.luma_of(And(ShiftLeftWords<3>(luma), mask));
      const Words odd = by.luma_of(And(ShiftRightWords<5>(luma), mask));
#pragma GCC unroll 3
      for (int c = 0; c < 3; ++c) {
        StoreInterleavedAsBytes(rgb[c] + i, AddWords(even, added.of[c]),
                                AddWords(odd, added.of[c]));
      }
    } else {
      const Added first(yuv[1] + i, yuv[2] + i, by);
      const Added second(yuv[1] + i + kWords, yuv[2] + i + kWords, by);
      const Words left = by.luma_of(eightfold(yuv[0] + i));
      const Words right = by.luma_of(eightfold(yuv[0] + i + kWords));
#pragma GCC unroll 3
      for (int c = 0; c < 3; ++c) {
        StoreInOrderAsBytes(rgb[c] + i, AddWords(left, first.of[c]), AddWords(right, second.of[c]));
      }
    }
  }
}

// The coefficients for wider samples.
struct DeepCoefficients {
  explicit DeepCoefficients(const DeepYuvCoefficients& by)
      : luma(Set(by.luma)),
        luma_offset(Set(by.luma_offset)),
        chroma_offset(Set(by.chroma_offset)),
        red_v(Set(by.red_v)),
        green_u(Set(by.green_u)),
        green_v(Set(by.green_v)),
        blue_u(Set(by.blue_u)) {}
  // Includes one half for rounding.
  Ints luma_of(Ints samples) const {
    return Add(Mul(Sub(samples, luma_offset), luma), Set(1 << (kDeepShift - 1)));
  }

  Ints luma, luma_offset, chroma_offset, red_v, green_u, green_v, blue_u;
};

struct DeepAdded {
  DeepAdded(const uint16_t* u_row, const uint16_t* v_row, const DeepCoefficients& by) {
    const Ints u = Sub(LoadWordsAsInts(u_row), by.chroma_offset),
               v = Sub(LoadWordsAsInts(v_row), by.chroma_offset);
    of[0] = Mul(v, by.red_v);
    of[1] = Add(Mul(u, by.green_u), Mul(v, by.green_v));
    of[2] = Mul(u, by.blue_u);
  }

  Ints of[3];
};

inline Ints rounded(Ints luma, Ints chroma) {
  return ShiftRightSigned<kDeepShift>(Add(luma, chroma));
}

template <int columns>
void convert_deep(const uint16_t* const yuv[3], int count, const DeepYuvCoefficients& coefficients,
                  uint8_t* const rgb[3]) {
  const DeepCoefficients by(coefficients);
  for (int i = 0; i < count; i += 2 * kLanes) {
    if constexpr (columns == 2) {
      const DeepAdded added(yuv[1] + i / 2, yuv[2] + i / 2, by);
      const Ints luma = Load(reinterpret_cast<const int32_t*>(yuv[0] + i));
      const Ints even = by.luma_of(And(luma, Set(0xffff)));
      const Ints odd = by.luma_of(ShiftRight<16>(luma));
#pragma GCC unroll 3
      for (int c = 0; c < 3; ++c) {
        StoreInterleavedIntsAsBytes(rgb[c] + i, rounded(even, added.of[c]),
                                    rounded(odd, added.of[c]));
      }
    } else {
      const DeepAdded first(yuv[1] + i, yuv[2] + i, by);
      const DeepAdded second(yuv[1] + i + kLanes, yuv[2] + i + kLanes, by);
      const Ints left = by.luma_of(LoadWordsAsInts(yuv[0] + i));
      const Ints right = by.luma_of(LoadWordsAsInts(yuv[0] + i + kLanes));
#pragma GCC unroll 3
      for (int c = 0; c < 3; ++c) {
        StoreInOrderIntsAsBytes(rgb[c] + i, rounded(left, first.of[c]),
                                rounded(right, second.of[c]));
      }
    }
  }
}

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL

#endif
