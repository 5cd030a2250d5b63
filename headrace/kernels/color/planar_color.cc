// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/color/planar_color.h"

#include <algorithm>
#include <cstddef>

#include "headrace/kernels/color/planar_color_levels.h"
#include "headrace/kernels/dispatch.h"

namespace headrace {
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
    const int sum = rgb[0][i] * kGrayRed + rgb[1][i] * 2 * kGrayHalfGreen + rgb[2][i] * kGrayBlue;
    gray[i] = static_cast<uint8_t>((sum + kGrayRound) >> 16);
  }
}

constexpr ColorKernels kScalar{rgb_from_ycc, gray_from_rgb};

const ColorKernels& kernels() {
  static const ByLevel<const ColorKernels*> by_level{&kScalar, color_kernels_avx2(),
                                                     color_kernels_avx512(), color_kernels_neon()};
  return *by_level.in_force();
}

}  // namespace

void rgb_from_ycc_rows(const uint8_t* const ycc[3], int count, uint8_t* const rgb[3]) {
  kernels().rgb_from_ycc(ycc, count, rgb);
}

void gray_from_rgb_rows(const uint8_t* const rgb[3], int count, uint8_t* gray) {
  kernels().gray_from_rgb(rgb, count, gray);
}

void rgb_from_cmy_rows(const uint8_t* const cmy[3], const uint8_t* white, int count,
                       uint8_t* const rgb[3]) {
  for (int c = 0; c < 3; ++c) {
    const uint8_t* const ink = cmy[c];
    uint8_t* const out = rgb[c];
    for (int i = 0; i < count; ++i) {
      // The ink takes its share of the white away; divided by 255 as Pillow does it.
      const unsigned product = unsigned{ink[i]} * white[i] + 128;
      out[i] = static_cast<uint8_t>(white[i] - (((product >> 8) + product) >> 8));
    }
  }
}

void complement_row(const uint8_t* in, int count, uint8_t* out) {
  for (int i = 0; i < count; ++i) out[i] = static_cast<uint8_t>(255 - in[i]);
}

}  // namespace headrace
