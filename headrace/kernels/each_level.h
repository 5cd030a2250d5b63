// SPDX-License-Identifier: Apache-2.0
// Compiles a kernel's file once more for each SIMD level. The file defines its own name
// (HEADRACE_KERNEL), and has two halves: code before this header, which is compiled once (all its
// includes, everything shared by its loops); and the loops, in namespace headrace::HEADRACE_LEVEL,
// which is scalar, avx2, avx512 or neon. Use mean_rows.cc as a template. Each kernel includes this
// header once, so it has no guard.
//
// Note [Nothing is included first at a level]: an inline function or template whose header is first
// included between target pragmas is compiled for that level, and the linker may take that copy for
// all callers: an illegal instruction on an older CPU. So the loops only include lanes and other
// loops, which are in an unnamed namespace; tools/check_layers.py checks this. Vectors are never
// passed through standard library templates, which are not compiled for the level.
#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/target.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

// Macros that a kernel may define before this header:
// HEADRACE_OWN_SCALAR  its scalar level is not written with lanes, but defined before this header,
//                      in namespace headrace::scalar;
// HEADRACE_AVX2_KERNEL, HEADRACE_AVX512_KERNEL, HEADRACE_NEON_KERNEL
//                      a file with the level's own implementation, for kernels whose shuffles
//                      differ;
// HEADRACE_NO_NEON     it needs lanes that neon.h lacks, so the scalar level runs there.
#ifndef HEADRACE_OWN_SCALAR
#define HEADRACE_LEVEL scalar
#define HEADRACE_LANES "headrace/kernels/lanes/scalar.h"
#include HEADRACE_KERNEL
#undef HEADRACE_LANES
#undef HEADRACE_LEVEL
#endif

#if defined(__x86_64__)

#define HEADRACE_LEVEL avx2
#define HEADRACE_LANES "headrace/kernels/lanes/avx2.h"
HEADRACE_TARGET("avx2,fma,f16c,bmi,bmi2,popcnt");
#ifdef HEADRACE_AVX2_KERNEL
#include HEADRACE_AVX2_KERNEL
#else
#include HEADRACE_KERNEL
#endif
HEADRACE_TARGET_END;
#undef HEADRACE_LANES
#undef HEADRACE_LEVEL

#define HEADRACE_LEVEL avx512
#define HEADRACE_LANES "headrace/kernels/lanes/avx512.h"
HEADRACE_TARGET(
    "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,avx512vnni,avx512bitalg,gfni,"
    "fma,f16c,bmi,bmi2,popcnt");
#ifdef HEADRACE_AVX512_KERNEL
#include HEADRACE_AVX512_KERNEL
#else
#include HEADRACE_KERNEL
#endif
HEADRACE_TARGET_END;
#undef HEADRACE_LANES
#undef HEADRACE_LEVEL

#define HEADRACE_LEVELS_OF(...) &scalar::__VA_ARGS__, &avx2::__VA_ARGS__, &avx512::__VA_ARGS__

#elif defined(__aarch64__) && !defined(HEADRACE_NO_NEON)

#define HEADRACE_LEVEL neon
#define HEADRACE_LANES "headrace/kernels/lanes/neon.h"
#ifdef HEADRACE_NEON_KERNEL
#include HEADRACE_NEON_KERNEL
#else
#include HEADRACE_KERNEL
#endif
#undef HEADRACE_LANES
#undef HEADRACE_LEVEL

#define HEADRACE_LEVELS_OF(...) &scalar::__VA_ARGS__, nullptr, nullptr, &neon::__VA_ARGS__

#else

#define HEADRACE_LEVELS_OF(...) &scalar::__VA_ARGS__, nullptr, nullptr

#endif

// Pointer to the function of this name (including template arguments), or the constant, of the
// active level.
#define HEADRACE_BY_LEVEL(...)                                                                     \
  [] {                                                                                             \
    static constexpr ByLevel<decltype(&scalar::__VA_ARGS__)> kOf{HEADRACE_LEVELS_OF(__VA_ARGS__)}; \
    return kOf.selected();                                                                         \
  }()
