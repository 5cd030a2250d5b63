// SPDX-License-Identifier: Apache-2.0
// Sums of wide samples with AVX-512. Twin: the loops of resample_wide.cc.
#include "headrace/kernels/resample/resample_wide_levels.h"

#if defined(__x86_64__)

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx512f");

namespace headrace {
namespace {
constexpr int kVector = 8;
}  // namespace
}  // namespace headrace

// After it:
#include "headrace/kernels/resample/resample_wide_loops.h"

namespace headrace {

const WideKernels* wide_kernels_avx512() { return &kKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const WideKernels* wide_kernels_avx512() { return nullptr; }
}  // namespace headrace

#endif
