// SPDX-License-Identifier: Apache-2.0
// What each SIMD level implements for yuv_rows.cc. Internal to kernels/.
//
// Note [Two columns to a sample of chroma]
// Luma at even and at odd columns are words of two registers, and what chroma adds is one for both:
// so no chroma sample is repeated, and its products are computed once for two pixels.
#pragma once

#include <cstdint>

#include "headrace/kernels/video/yuv_rows.h"

namespace headrace {

constexpr int kDeepShift = 21;  // of DeepYuvCoefficients

struct YuvKernels {
  void (*halved)(const uint8_t* const yuv[3], int count, const YuvCoefficients& by,
                 uint8_t* const rgb[3]);
  void (*whole)(const uint8_t* const yuv[3], int count, const YuvCoefficients& by,
                uint8_t* const rgb[3]);
  void (*deep_halved)(const uint16_t* const yuv[3], int count, const DeepYuvCoefficients& by,
                      uint8_t* const rgb[3]);
  void (*deep_whole)(const uint16_t* const yuv[3], int count, const DeepYuvCoefficients& by,
                     uint8_t* const rgb[3]);
};

// Null where the architecture has no such level.
const YuvKernels* yuv_kernels_avx2();
const YuvKernels* yuv_kernels_avx512();

}  // namespace headrace
