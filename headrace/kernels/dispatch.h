// SPDX-License-Identifier: Apache-2.0
// The instruction set that the kernels use: the best one of this CPU, chosen once, or forced for
// tests by HEADRACE_SIMD=scalar|avx2|avx2-slow-pdep|avx512|neon. Results are equal on all levels.
//
// pdep and pext, of BMI2, are microcode on some CPUs (AMD before Zen 3, Hygon), hundreds of cycles
// each, so at the level kAvx2 what needs them has a second form. The probe decides (pdep_cost.h).
// Thread-safe, except for set_simd_level() and set_simd_form().
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

// kAvx2: AVX2, FMA, F16C, BMI1, BMI2. kAvx512: besides these F, BW, DQ, VL, VBMI, VBMI2, VNNI,
// GFNI. kNeon: what every 64-bit ARM has.
enum class SimdLevel { kScalar, kAvx2, kAvx512, kNeon };

// The result of simd_level(), which every row of a picture reads often; -1 before the first call.
extern std::atomic<int> simd_level_in_force;
SimdLevel choose_simd_level();

// The level in force. The first call throws Exception HR0341 when HEADRACE_SIMD names no level, or
// one that this CPU lacks.
inline SimdLevel simd_level() {
  const int level = simd_level_in_force.load(std::memory_order_relaxed);
  return level >= 0 ? static_cast<SimdLevel>(level) : choose_simd_level();
}
// With quick pdep. For tests and benchmarks; REQUIRES: no loader runs.
void set_simd_level(SimdLevel level);
std::vector<SimdLevel> available_levels();  // of this CPU, worst first
std::string_view name_of(SimdLevel level);

// Chooses the level in force among those that a kernel has. Null: this architecture has no such
// level. A kernel that has nothing for NEON is its scalar twin there.
template <typename Kernel>
class ByLevel {
 public:
  constexpr ByLevel(Kernel scalar, Kernel avx2, Kernel avx512, Kernel neon = {})
      : kernels_{scalar, avx2, avx512, neon ? neon : scalar} {}
  Kernel operator[](SimdLevel level) const { return kernels_[static_cast<size_t>(level)]; }
  Kernel in_force() const { return (*this)[simd_level()]; }

 private:
  Kernel kernels_[4];
};

// A level, and how it does without pdep.
struct SimdForm {
  SimdLevel level = SimdLevel::kScalar;
  bool slow_pdep = false;  // of kAvx2 alone
  friend bool operator==(const SimdForm&, const SimdForm&) = default;
};
bool slow_pdep();  // of the form in force
SimdForm simd_form();
void set_simd_form(SimdForm form);
std::vector<SimdForm> available_forms();  // worst first
std::string_view name_of(SimdForm form);

// Why the form in force is that one.
struct SimdReason {
  bool forced = false;           // by HEADRACE_SIMD
  SimdForm best;                 // used unless forced
  double pdep_cost = 0;          // in multiplications; 0: not measured, where nothing depends on it
  std::string next_level_lacks;  // instructions missing for the level above the best; empty: none
};
SimdReason simd_reason();

}  // namespace headrace
