// SPDX-License-Identifier: Apache-2.0
// HEADRACE_HD before a function: nvcc compiles it for the CPU and for the GPU, other compilers for
// the CPU only. Such functions use only <cstdint> and memcpy from the standard library.
// HEADRACE_ROLLED before a loop: nvcc does not unroll it, which would cost registers.
// HEADRACE_UNROLLED before a loop of up to eight iterations: it is unrolled, so that its variables
// stay in registers.
#pragma once

#ifdef __CUDACC__
#define HEADRACE_HD __host__ __device__
#define HEADRACE_ROLLED _Pragma("unroll 1")
#define HEADRACE_UNROLLED _Pragma("unroll")
#else
#define HEADRACE_HD
#define HEADRACE_ROLLED
#define HEADRACE_UNROLLED _Pragma("GCC unroll 8")
#endif
