// SPDX-License-Identifier: Apache-2.0
// Which instruction set the kernels use: the best that this CPU has, chosen once, or forced for
// tests by HEADRACE_SIMD=scalar|avx2|avx512. Results are equal on all levels.
// Thread-safe, except for set_simd_level().
#pragma once

#include <atomic>
#include <string_view>
#include <vector>

namespace headrace {

// kAvx2: AVX2, FMA, F16C, BMI1, BMI2. kAvx512: besides these F, BW, DQ, VL, VBMI, VBMI2, VNNI,
// GFNI.
enum class SimdLevel { kScalar, kAvx2, kAvx512 };

// Of simd_level(), which every row of a picture asks a dozen times; -1 before its first call.
extern std::atomic<int> simd_level_in_force;
SimdLevel choose_simd_level();

// The level in force. The first call throws Exception HR0341 when HEADRACE_SIMD names no level, or
// one that this CPU lacks.
inline SimdLevel simd_level() {
  const int level = simd_level_in_force.load(std::memory_order_relaxed);
  return level >= 0 ? static_cast<SimdLevel>(level) : choose_simd_level();
}
void set_simd_level(SimdLevel level);       // for tests and benchmarks; REQUIRES: no loader runs
std::vector<SimdLevel> available_levels();  // of this CPU, worst first
std::string_view name_of(SimdLevel level);

}  // namespace headrace
