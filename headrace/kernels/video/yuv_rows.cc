// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/video/yuv_rows.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/video/yuv_rows_levels.h"

namespace headrace {
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

// Samples above what their bits hold, which a decoder gone wrong may give, wrap around on every
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

constexpr YuvKernels kScalar{convert<2>, convert<1>, convert_deep<2>, convert_deep<1>};

const YuvKernels& kernels() {
  static const ByLevel<const YuvKernels*> by_level{&kScalar, yuv_kernels_avx2(),
                                                   yuv_kernels_avx512()};
  return *by_level.in_force();
}

// Shares of red and blue in luma, as the standards give them: H.273, table 4.
struct LumaShares {
  double red, blue;
};
constexpr std::array<LumaShares, 5> kShares = {
    {{0.299, 0.114}, {0.2126, 0.0722}, {0.2627, 0.0593}, {0.212, 0.087}, {0.3, 0.11}}};

// As libswscale has them, times 2^16 * 255 / 224: V to red, U to blue, and what U and V take from
// green, of limited range. Not all are rounded to the nearest.
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
    return short_of(full_range ? value * 224 / 255 : value);  // truncated, also where negative
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
  const double most = full_range ? (1 << bits) - 1 : 219 * scale;  // luma from black to white
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
  (halved ? kernels().halved : kernels().whole)(yuv, count, by, rgb);
}

void rgb_from_deep_yuv_row(const uint16_t* const yuv[3], bool halved, int count,
                           const DeepYuvCoefficients& by, uint8_t* const rgb[3]) {
  (halved ? kernels().deep_halved : kernels().deep_whole)(yuv, count, by, rgb);
}

void bytes_from_deep_row(const uint16_t* in, int bits, int count, uint8_t* out) {
  const uint32_t most = (uint32_t{1} << bits) - 1;
  for (int i = 0; i < count; ++i) {
    out[i] = static_cast<uint8_t>((std::min<uint32_t>(in[i], most) * 510 + most) / (2 * most));
  }
}

}  // namespace headrace
