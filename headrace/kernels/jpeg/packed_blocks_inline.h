// SPDX-License-Identifier: Apache-2.0
// Macros for the readers of packed quads: everything is in one function, each step for the four
// blocks of a quad (Note [Four chains] in packed_blocks_unpack_loops.h). Internal to kernels/.
#pragma once

#define HEADRACE_INLINE inline __attribute__((always_inline))
#define HEADRACE_FOUR _Pragma("GCC unroll 4") for (int j = 0; j < 4; ++j)
