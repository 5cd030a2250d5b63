// SPDX-License-Identifier: Apache-2.0
// Compiles the code between HEADRACE_TARGET("avx2,fma"); and HEADRACE_TARGET_END; for CPUs with
// these features, so that one build runs on every CPU and selects at run time (dispatch.h). All
// other headers must be included before it: otherwise their definitions would be compiled for these
// CPUs alone. HEADRACE_UNPREDICTABLE(condition): keeps clang from compiling it to a branch; g++
// does not.
#pragma once

#define HEADRACE_PRAGMA(...) _Pragma(#__VA_ARGS__)

#if defined(__clang__)

#define HEADRACE_TARGET(features)                                                               \
  HEADRACE_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function)) \
  static_assert(true)
#define HEADRACE_TARGET_END HEADRACE_PRAGMA(clang attribute pop) static_assert(true)
#define HEADRACE_UNPREDICTABLE(condition) __builtin_unpredictable(condition)

#else

// The intrinsics' own "undefined" operands trigger both warnings (GCC bug 105593).
#define HEADRACE_TARGET(features)                                 \
  HEADRACE_PRAGMA(GCC diagnostic push)                            \
  HEADRACE_PRAGMA(GCC diagnostic ignored "-Wuninitialized")       \
  HEADRACE_PRAGMA(GCC diagnostic ignored "-Wmaybe-uninitialized") \
  HEADRACE_PRAGMA(GCC push_options)                               \
  HEADRACE_PRAGMA(GCC target(features))                           \
  static_assert(true)
#define HEADRACE_TARGET_END        \
  HEADRACE_PRAGMA(GCC pop_options) \
  HEADRACE_PRAGMA(GCC diagnostic pop) static_assert(true)
#define HEADRACE_UNPREDICTABLE(condition) (condition)

#endif
