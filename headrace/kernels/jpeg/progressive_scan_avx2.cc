// SPDX-License-Identifier: Apache-2.0
// Bands of AC coefficients with BMI2. Scalar reference: progressive_scan.cc.
#include "headrace/kernels/jpeg/progressive_scan_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx2,bmi,bmi2,popcnt,lzcnt");

namespace headrace {
namespace {

inline uint64_t deposited(uint64_t bits, uint64_t mask) { return _pdep_u64(bits, mask); }

}  // namespace
}  // namespace headrace

// These need the definitions above.
#include "headrace/kernels/jpeg/progressive_change_loops.h"
#include "headrace/kernels/jpeg/progressive_ones_loops.h"
#include "headrace/kernels/jpeg/progressive_scan_loops.h"

namespace headrace {

const BandKernels* band_kernels_avx2() { return &kBandKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const BandKernels* band_kernels_avx2() { return nullptr; }
}  // namespace headrace

#endif
