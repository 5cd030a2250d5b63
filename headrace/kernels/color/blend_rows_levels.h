// SPDX-License-Identifier: Apache-2.0
// What each SIMD level implements for blend_rows.cc. Internal to kernels/.
#pragma once

#include "headrace/kernels/color/blend_rows.h"

namespace headrace {

inline constexpr int kBlendShift = 21;  // the fraction of PillowBlend's numbers
// A slope is two factors of 15 bits, one for 128 times the difference.
inline constexpr int kBlendLowBits = 7;

struct BlendKernels {
  void (*in_floats)(const uint8_t* value, const uint8_t* other, int count, float factor,
                    uint8_t* out);
  // REQUIRES: the blend has whole numbers.
  void (*in_numbers)(const uint8_t* value, const uint8_t* other, int count,
                     const PillowBlend& blend, uint8_t* out);
};

// Null where the architecture has no such level.
const BlendKernels* blend_kernels_avx2();
const BlendKernels* blend_kernels_avx512();
const BlendKernels* blend_kernels_neon();

}  // namespace headrace
