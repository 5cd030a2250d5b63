// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/dispatch.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "headrace/base/error.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace headrace {
namespace {

const ErrorCode kBadLevel{
    "HR0341", ErrorKind::kConfig, "SIMD level not available",
    "HEADRACE_SIMD forces the instruction set of the kernels, for tests: scalar, avx2 or avx512. "
    "It names no level, or one that this CPU (or the operating system under it) lacks. Unset it: "
    "the best level is then chosen, and the results are the same on all of them."};

#if defined(__x86_64__)

struct Registers {
  uint32_t a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(uint32_t leaf) {
  Registers r;
  __get_cpuid_count(leaf, 0, &r.a, &r.b, &r.c, &r.d);  // leaves zeros where the leaf is missing
  return r;
}

// Which register states the operating system saves: without it the instructions fault.
uint64_t saved_states(const Registers& leaf1) {
  if (!(leaf1.c & bit_OSXSAVE)) return 0;
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

SimdLevel best_level() {
  constexpr uint64_t kAvxStates = 0x06, kAvx512States = 0xe6;  // XMM, YMM; opmask, ZMM
  constexpr uint32_t kLeaf1C = bit_FMA | bit_F16C | bit_AVX;
  constexpr uint32_t kAvx2B = bit_AVX2 | bit_BMI | bit_BMI2;
  constexpr uint32_t kAvx512B = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
  constexpr uint32_t kAvx512C = bit_AVX512VBMI | bit_AVX512VBMI2 | bit_AVX512VNNI | bit_GFNI;
  const Registers leaf1 = cpuid(1), leaf7 = cpuid(7);
  const uint64_t states = saved_states(leaf1);
  if ((states & kAvxStates) != kAvxStates || (leaf1.c & kLeaf1C) != kLeaf1C ||
      (leaf7.b & kAvx2B) != kAvx2B) {
    return SimdLevel::kScalar;
  }
  if ((states & kAvx512States) != kAvx512States || (leaf7.b & kAvx512B) != kAvx512B ||
      (leaf7.c & kAvx512C) != kAvx512C) {
    return SimdLevel::kAvx2;
  }
  return SimdLevel::kAvx512;
}

#else

SimdLevel best_level() { return SimdLevel::kScalar; }

#endif

SimdLevel level_at_start() {
  const char* const forced = std::getenv("HEADRACE_SIMD");
  if (!forced || !*forced) return best_level();
  std::string names;
  for (SimdLevel level : available_levels()) {
    if (name_of(level) == forced) return level;
    names += (names.empty() ? "" : ", ") + std::string(name_of(level));
  }
  raise(kBadLevel, "HEADRACE_SIMD must be one of " + names + " here (got '" + forced + "')",
        "unset HEADRACE_SIMD");
}

}  // namespace

constinit std::atomic<int> simd_level_in_force{-1};

SimdLevel choose_simd_level() {
  static const SimdLevel level = level_at_start();
  int none = -1;  // else a test was faster
  simd_level_in_force.compare_exchange_strong(none, static_cast<int>(level));
  return static_cast<SimdLevel>(simd_level_in_force.load());
}

void set_simd_level(SimdLevel level) { simd_level_in_force = static_cast<int>(level); }

std::vector<SimdLevel> available_levels() {
  std::vector<SimdLevel> levels{SimdLevel::kScalar};
  if (best_level() >= SimdLevel::kAvx2) levels.push_back(SimdLevel::kAvx2);
  if (best_level() >= SimdLevel::kAvx512) levels.push_back(SimdLevel::kAvx512);
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
  }
  return "scalar";
}

}  // namespace headrace
