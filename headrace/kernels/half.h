// SPDX-License-Identifier: Apache-2.0
// float32 -> float16 and bfloat16 bits and back in portable integer arithmetic, round to nearest
// even, as the hardware does.
#pragma once

#include <cstdint>

#include "headrace/base/host_device_function.h"

namespace headrace {

// `mantissa` shifted right by `shift` (1..31), rounded to nearest, ties to even.
HEADRACE_HD inline uint32_t shifted_to_nearest_even(uint32_t mantissa, int shift) {
  const uint32_t kept = mantissa >> shift, rest = mantissa & ((1u << shift) - 1);
  const uint32_t half = 1u << (shift - 1);
  return kept + (rest > half || (rest == half && (kept & 1)));
}

HEADRACE_HD inline uint16_t float16_from_float32(float x) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) {  // NaN: quiet, with as much of the payload as fits
    return static_cast<uint16_t>(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  }
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  if (exponent >= 16) return sign | 0x7c00;
  if (exponent >= -14) {
    // a carry out of the mantissa correctly steps the exponent, up to infinity
    return static_cast<uint16_t>(sign |
                                 shifted_to_nearest_even(magnitude - ((127 - 15) << 23), 13));
  }
  if (exponent < -25) return sign;
  const uint32_t mantissa = (magnitude & 0x7fffff) | 0x800000;
  return static_cast<uint16_t>(sign | shifted_to_nearest_even(mantissa, -1 - exponent));
}

HEADRACE_HD inline float float32_from_float16(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16;
  const uint32_t exponent = half >> 10 & 0x1f, mantissa = half & 0x3ff;
  if (exponent == 0x1f) {
    return __builtin_bit_cast(float,
                              sign | 0x7f800000 | mantissa << 13 | (mantissa ? 0x400000 : 0));
  }
  if (exponent) return __builtin_bit_cast(float, sign | (exponent + 112) << 23 | mantissa << 13);
  const float subnormal = static_cast<float>(mantissa) * 0x1p-24f;
  return sign ? -subnormal : subnormal;
}

HEADRACE_HD inline uint16_t bfloat16_from_float32(float x) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

HEADRACE_HD inline float float32_from_bfloat16(uint16_t bits) {
  return __builtin_bit_cast(float, uint32_t{bits} << 16);
}

}  // namespace headrace
