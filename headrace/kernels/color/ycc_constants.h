// SPDX-License-Identifier: Apache-2.0
// Constants of exact arithmetic with YCbCr and gray in 16 bits, for planar_color.cc and for kernels
// on GPUs. Internal to kernels/.
//
// Note [YCbCr in 16 bits]
// libjpeg adds to Y, with u = Cb - 128 and v = Cr - 128, rounded as (x + 2^15) >> 16:
//   red    91881 v
//   green  -22554 u - 46802 v
//   blue   116130 u
// A multiplication with rounding, (a * b + 2^14) >> 15, gives red from a = 2 v, b = 22970, and blue
// from a = 3 u, b = 19355: all 256 values were compared. Half of green's sum is 256 * h + l with
// h = 44 u + 91 v and l = 13 u + 105 v, so green is (((2^14 - l) >> 8) - h) >> 7, exactly.
#pragma once

namespace headrace {

// Weights of a byte pair (Cb, Cr), in the layout of the byte multiply-add.
constexpr short byte_pair(int first, int second) { return static_cast<short>(first | second << 8); }
constexpr short kRedPair = byte_pair(0, 2), kBluePair = byte_pair(3, 0);
constexpr short kRedFactor = 22970, kBlueFactor = 19355;
constexpr short kGreenHighCb = 44, kGreenHighCr = 91, kGreenLowCb = 13, kGreenLowCr = 105;
constexpr short kGreenHighPair = byte_pair(kGreenHighCb, kGreenHighCr),
                kGreenLowPair = byte_pair(kGreenLowCb, kGreenLowCr);
constexpr short kGreenRound = 1 << 14;

// Weights of gray in units of 2^-16; green's does not fit 16 bits and is halved.
constexpr int kGrayRed = 19595, kGrayHalfGreen = 19235, kGrayBlue = 7471, kGrayRound = 0x8000;

}  // namespace headrace
