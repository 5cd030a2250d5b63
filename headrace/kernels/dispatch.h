// SPDX-License-Identifier: Apache-2.0
// The instruction set that the kernels use: the best one of this CPU, chosen once, or forced for
// tests by HEADRACE_SIMD=scalar|avx2|avx2-slow-pdep|avx512|neon. Results are equal on all SIMD
// levels.
//
// pdep and pext, of BMI2, are microcode on some CPUs (AMD before Zen 3, Hygon), hundreds of cycles
// each, so at the level kAvx2 kernels that need them have a second form. A probe decides
// (pdep_cost.cc). Thread-safe, except for set_simd_level() and set_simd_form().
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

// kAvx2: AVX2, FMA, F16C, BMI1, BMI2. kAvx512: also F, BW, DQ, VL, VBMI, VBMI2, VNNI, GFNI. kNeon:
// baseline of 64-bit ARM.
enum class SimdLevel { kScalar, kAvx2, kAvx512, kNeon };

// Cached result of simd_level(), which is read for every row of a picture; -1 before the first
// call.
extern std::atomic<int> selected_simd_level;
SimdLevel choose_simd_level();

// The active level. The first call throws Exception HR0341 if HEADRACE_SIMD is not a valid SIMD
// level, or if this CPU lacks it.
inline SimdLevel simd_level() {
  const int level = selected_simd_level.load(std::memory_order_relaxed);
  return level >= 0 ? static_cast<SimdLevel>(level) : choose_simd_level();
}
// With fast pdep. For tests and benchmarks; REQUIRES: no loader is running.
void set_simd_level(SimdLevel level);
std::vector<SimdLevel> available_levels();  // of this CPU, slowest first
std::string_view name_of(SimdLevel level);

// Selects a kernel's implementation for the active SIMD level. Null: this architecture has no such
// level. Kernels without NEON code use the scalar reference there.
template <typename Kernel>
class ByLevel {
 public:
  constexpr ByLevel(Kernel scalar, Kernel avx2, Kernel avx512, Kernel neon = {})
      : kernels_{scalar, avx2, avx512, neon ? neon : scalar} {}
  Kernel operator[](SimdLevel level) const { return kernels_[static_cast<size_t>(level)]; }
  Kernel selected() const { return (*this)[simd_level()]; }

 private:
  Kernel kernels_[4];
};

// A SIMD level, and whether its kernels avoid pdep because it is slow.
struct SimdForm {
  SimdLevel level = SimdLevel::kScalar;
  bool slow_pdep = false;  // kAvx2 only
  friend bool operator==(const SimdForm&, const SimdForm&) = default;
};
bool slow_pdep();  // of the active form
SimdForm simd_form();
void set_simd_form(SimdForm form);
std::vector<SimdForm> available_forms();  // slowest first
std::string_view name_of(SimdForm form);

// Why this form is active.
struct SimdReason {
  bool forced = false;           // forced by HEADRACE_SIMD
  SimdForm best;                 // used unless another one is forced
  double pdep_cost = 0;          // in multiplications; 0: not measured, because not needed
  std::string next_level_lacks;  // instructions that the next level needs; empty: none
};
SimdReason simd_reason();

// Measures how long pdep takes, because a CPU's name only identifies known models: the cost of a
// dependent pdep, in dependent multiplications: 1 in hardware, 6 to 100 in microcode. Takes
// microseconds. REQUIRES: BMI2. 0 on other architectures.
double pdep_cost();
constexpr double kSlowPdepCost = 3;

}  // namespace headrace
