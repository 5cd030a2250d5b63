// SPDX-License-Identifier: Apache-2.0
// Rows of luma and chroma from video -> planar rows of red, green and blue, 8 bits each.
//
// Samples of 8 bits are converted as libswscale does it by default on x86, bit for bit, where
// chroma has half of the columns (4:2:0, 4:2:2): models are trained on such frames. libswscale
// repeats chroma samples and rounds every product down,
//
//   Y' = (8 Y - offset) luma >> 16,  U' = 8 U - 1024,  V' = 8 V - 1024
//   R = Y' + (V' red_v >> 16)
//   G = Y' + (U' green_u >> 16) + (V' green_v >> 16)
//   B = Y' + (U' blue_u >> 16)                                               clipped to 0..255
//
// so a picture is one level darker on average than with the standard's matrix. (libswscale uses
// another path for frames of odd height; we use this one.) If chroma has all columns (4:4:4) we use
// the same formula, and libswscale another one, which differs by up to 3.
//
// Wider samples have no reference: libraries differ, and so do versions of the same library. Here
// wider samples are converted by the standard, rounded to nearest, ties up; the matrix'
// coefficients, times 255 for a whole sample, are multiples of 2^-21, so that float64 and integers
// agree in every bit. Chroma is repeated there, too.
//
// Any thread may call these functions. They may read and write up to 63 bytes past `count` samples
// of each row (of chroma, half as many). In and out must not overlap.
#pragma once

#include <cstdint>

namespace headrace {

enum class YuvMatrix : uint8_t { kBT601, kBT709, kBT2020, kSMPTE240M, kFCC };

struct YuvCoefficients {
  int16_t luma = 0, offset = 0;
  int16_t red_v = 0, green_u = 0, green_v = 0, blue_u = 0;
};
YuvCoefficients yuv_coefficients(YuvMatrix matrix, bool full_range);

// yuv: luma, Cb, Cr. Chroma has one sample per column, or, if halved, one per two columns, starting
// with the row's first.
void rgb_from_yuv_row(const uint8_t* const yuv[3], bool halved, int count,
                      const YuvCoefficients& by, uint8_t* const rgb[3]);

// In units of 2^-21; the offsets are samples.
struct DeepYuvCoefficients {
  int32_t luma = 0, luma_offset = 0, chroma_offset = 0;
  int32_t red_v = 0, green_u = 0, green_v = 0, blue_u = 0;
};
// REQUIRES: 9 <= bits <= 16
DeepYuvCoefficients deep_yuv_coefficients(YuvMatrix matrix, bool full_range, int bits);
// The same for samples with more than 8 bits.
void rgb_from_deep_yuv_row(const uint16_t* const yuv[3], bool halved, int count,
                           const DeepYuvCoefficients& by, uint8_t* const rgb[3]);

// A row of wide samples as bytes: value * 255 / maximum, rounded to nearest, ties up.
void bytes_from_deep_row(const uint16_t* in, int bits, int count, uint8_t* out);

}  // namespace headrace
