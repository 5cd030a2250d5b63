// SPDX-License-Identifier: Apache-2.0
// Float operations of kernels beyond the basic four: one or two instructions each on a GPU,
// elsewhere the scalar reference. The same bits everywhere: only fma() is fused.
#pragma once

#include <cstdint>
#ifndef __CUDA_ARCH__
#include <cmath>
#endif

#include "headrace/base/host_device_function.h"

namespace headrace::floats {

#ifdef __CUDA_ARCH__

HEADRACE_HD inline float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
HEADRACE_HD inline float floor(float x) { return ::floorf(x); }
HEADRACE_HD inline double floor(double x) { return ::floor(x); }
// To the nearest integer, ties to even.
HEADRACE_HD inline float rint(float x) { return ::rintf(x); }

// Converts an integer below 2^23. Conversion instructions have an eighth of the throughput of
// others; adding 2^23 leaves the integer in the lowest bits.
HEADRACE_HD inline float of(uint32_t number) {
  return __uint_as_float(0x4b000000u | number) - 8388608.0f;
}
// Truncates the value, or rounds it like rint(), to the lowest byte of the result; the other bytes
// are unspecified. NaN gives 0.
HEADRACE_HD inline uint32_t truncated_byte(float x) {
  return __float_as_uint(__fadd_rz(fminf(fmaxf(x, 0.0f), 255.0f), 8388608.0f));
}
HEADRACE_HD inline uint32_t rounded_byte(float x) {
  return __float_as_uint(__fadd_rn(fminf(fmaxf(x, 0.0f), 255.0f), 8388608.0f));
}

#else

HEADRACE_HD inline float fma(float a, float b, float c) { return std::fma(a, b, c); }
HEADRACE_HD inline float floor(float x) { return std::floor(x); }
HEADRACE_HD inline double floor(double x) { return std::floor(x); }
HEADRACE_HD inline float rint(float x) { return std::nearbyint(x); }

HEADRACE_HD inline float of(uint32_t number) { return static_cast<float>(number); }
HEADRACE_HD inline uint32_t truncated_byte(float x) {
  return x > 0 ? (x < 255 ? static_cast<uint32_t>(x) : 255) : 0;
}
HEADRACE_HD inline uint32_t rounded_byte(float x) { return truncated_byte(std::nearbyint(x)); }

#endif

}  // namespace headrace::floats
