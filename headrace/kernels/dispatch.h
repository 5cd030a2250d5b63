// SPDX-License-Identifier: Apache-2.0
// Which instruction set the kernels use: the best that this CPU has, chosen once, or forced for
// tests by HEADRACE_SIMD=scalar|avx2|avx512 (a level that the CPU lacks is an error at start-up).
// Results are equal on all levels.
#pragma once

#include <string_view>
#include <vector>

namespace headrace {

enum class SimdLevel { kScalar, kAvx2, kAvx512 };  // kAvx512: F, BW, VL, DQ, VBMI, VBMI2, VNNI

SimdLevel simd_level();                      // the level in force
void set_simd_level(SimdLevel level);        // for tests and benchmarks; REQUIRES: no loader runs
std::vector<SimdLevel> available_levels();   // of this CPU, worst first
std::string_view name_of(SimdLevel level);

}  // namespace headrace
