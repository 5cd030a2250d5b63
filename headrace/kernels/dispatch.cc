// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/dispatch.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "headrace/base/error.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace headrace {
namespace {

const ErrorCode kBadLevel{
    "HR0341", ErrorKind::kConfig, "SIMD level not available",
    "HEADRACE_SIMD forces the instruction set of the kernels, for tests: scalar, avx2, "
    "avx2-slow-pdep, avx512 or neon. Its value is unknown, or not supported by this CPU (or its "
    "operating system). Unset it: the best level is then chosen, and the results are the same on "
    "all SIMD levels."};

#if defined(__x86_64__)

struct Registers {
  uint32_t a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(uint32_t leaf) {
  Registers r;
  __get_cpuid_count(leaf, 0, &r.a, &r.b, &r.c, &r.d);  // gives zeros if the leaf is missing
  return r;
}

// The register states that the operating system saves; without them the instructions fault.
uint64_t saved_states(const Registers& leaf1) {
  if (!(leaf1.c & bit_OSXSAVE)) return 0;
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

// Features that this machine lacks for the level above scalar, and for the one above that; empty if
// none.
std::string features_missing_for_avx2() {
  constexpr uint64_t kAvxStates = 0x06;  // XMM, YMM
  constexpr uint32_t kLeaf1C = bit_FMA | bit_F16C | bit_AVX;
  constexpr uint32_t kAvx2B = bit_AVX2 | bit_BMI | bit_BMI2;
  const Registers leaf1 = cpuid(1), leaf7 = cpuid(7);
  if ((leaf1.c & kLeaf1C) != kLeaf1C || (leaf7.b & kAvx2B) != kAvx2B) return "AVX2, FMA or BMI2";
  if ((saved_states(leaf1) & kAvxStates) != kAvxStates) return "the operating system's support";
  return "";
}

std::string features_missing_for_avx512() {
  constexpr uint64_t kAvx512States = 0xe6;  // XMM, YMM; opmask, ZMM
  constexpr uint32_t kAvx512B = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
  constexpr std::array<std::pair<uint32_t, const char*>, 5> kAvx512C = {{
      {bit_AVX512VBMI, "VBMI"},
      {bit_AVX512VBMI2, "VBMI2"},
      {bit_AVX512BITALG, "BITALG"},
      {bit_AVX512VNNI, "VNNI"},
      {bit_GFNI, "GFNI"},
  }};
  const Registers leaf1 = cpuid(1), leaf7 = cpuid(7);
  if ((leaf7.b & kAvx512B) != kAvx512B) return "AVX-512";
  if ((saved_states(leaf1) & kAvx512States) != kAvx512States) {
    return "the operating system's support of AVX-512";
  }
  std::string lacks;
  for (const auto& [bit, name] : kAvx512C) {
    if (!(leaf7.c & bit)) lacks += (lacks.empty() ? "" : ", ") + std::string(name);
  }
  return lacks;
}

std::string next_level_lacks(SimdLevel best) {
  return best == SimdLevel::kScalar ? features_missing_for_avx2() : features_missing_for_avx512();
}

std::vector<SimdLevel> levels_above_scalar() {
  std::vector<SimdLevel> levels;
  if (features_missing_for_avx2().empty()) levels.push_back(SimdLevel::kAvx2);
  if (!levels.empty() && features_missing_for_avx512().empty())
    levels.push_back(SimdLevel::kAvx512);
  return levels;
}

#elif defined(__aarch64__)

std::string next_level_lacks(SimdLevel) { return ""; }
std::vector<SimdLevel> levels_above_scalar() { return {SimdLevel::kNeon}; }

#else

std::string next_level_lacks(SimdLevel) { return "x86-64 or 64-bit ARM"; }
std::vector<SimdLevel> levels_above_scalar() { return {}; }

#endif

SimdLevel best_level() { return available_levels().back(); }

// CPUs that support avx512 have a fast pdep
double pdep_cost_here() {
  static const double cost = best_level() == SimdLevel::kAvx2 ? pdep_cost() : 0;
  return cost;
}

SimdForm best_form() {
  return {.level = best_level(), .slow_pdep = pdep_cost_here() > kSlowPdepCost};
}

bool is_forced() {
  const char* const forced = std::getenv("HEADRACE_SIMD");
  return forced && *forced;
}

SimdForm form_at_start() {
  if (!is_forced()) return best_form();
  const std::string_view forced = std::getenv("HEADRACE_SIMD");
  std::string names;
  for (const SimdForm form : available_forms()) {
    if (name_of(form) == forced) return form;
    names += (names.empty() ? "" : ", ") + std::string(name_of(form));
  }
  raise(kBadLevel,
        "HEADRACE_SIMD must be one of " + names + " here (got '" + std::string(forced) + "')",
        "unset HEADRACE_SIMD");
}

std::atomic<bool> selected_slow_pdep{false};

}  // namespace

constinit std::atomic<int> selected_simd_level{-1};

SimdLevel choose_simd_level() {
  static const SimdForm form = form_at_start();
  if (selected_simd_level.load() < 0) {  // otherwise measured to be faster
    selected_slow_pdep = form.slow_pdep;
    int none = -1;
    selected_simd_level.compare_exchange_strong(none, static_cast<int>(form.level));
  }
  return static_cast<SimdLevel>(selected_simd_level.load());
}

void set_simd_level(SimdLevel level) { set_simd_form({.level = level}); }

void set_simd_form(SimdForm form) {
  selected_slow_pdep = form.slow_pdep;
  selected_simd_level = static_cast<int>(form.level);
}

bool slow_pdep() {
  simd_level();
  return selected_slow_pdep.load(std::memory_order_relaxed);
}

SimdForm simd_form() { return {.level = simd_level(), .slow_pdep = slow_pdep()}; }

std::vector<SimdForm> available_forms() {
  std::vector<SimdForm> forms;
  for (const SimdLevel level : available_levels()) {
    if (level == SimdLevel::kAvx2) forms.push_back({.level = level, .slow_pdep = true});
    forms.push_back({.level = level});
  }
  return forms;
}

SimdReason simd_reason() {
  const SimdForm best = best_form();
  return {.forced = is_forced(),
          .best = best,
          .pdep_cost = pdep_cost_here(),
          .next_level_lacks = next_level_lacks(best.level)};
}

std::vector<SimdLevel> available_levels() {
  std::vector<SimdLevel> levels = levels_above_scalar();
  levels.insert(levels.begin(), SimdLevel::kScalar);
  return levels;
}

std::string_view name_of(SimdLevel level) {
  switch (level) {
    case SimdLevel::kScalar:
      return "scalar";
    case SimdLevel::kAvx2:
      return "avx2";
    case SimdLevel::kAvx512:
      return "avx512";
    case SimdLevel::kNeon:
      return "neon";
  }
  return "scalar";
}

std::string_view name_of(SimdForm form) {
  return form.slow_pdep ? "avx2-slow-pdep" : name_of(form.level);
}

}  // namespace headrace
