// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/dispatch.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("bmi2");

namespace headrace {
namespace {

constexpr int kChain = 128, kRounds = 16;
constexpr uint64_t kMask = 0x9e3779b97f4a7c15;  // microcoded versions take a step per set bit

uint64_t pdeps(uint64_t value) {
  for (int i = 0; i < kChain; ++i) value = _pdep_u64(value, kMask) | 1;
  return value;
}

uint64_t products(uint64_t value) {
  for (int i = 0; i < kChain; ++i) {
    value = value * kMask | 1;
    __asm__("" : "+r"(value));
  }
  return value;
}

// The minimum of several rounds, so that a single disturbance does not count.
uint64_t ticks(uint64_t (*chain)(uint64_t)) {
  uint64_t least = std::numeric_limits<uint64_t>::max();
  for (int round = 0; round < kRounds; ++round) {
    uint64_t value = least;
    const uint64_t start = __rdtsc();
    __asm__ volatile("" : "+r"(value) : "r"(start));
    value = chain(value);
    __asm__ volatile("" : "+r"(value));
    least = std::min<uint64_t>(least, __rdtsc() - start);
  }
  return std::max<uint64_t>(least, 1);
}

}  // namespace

double pdep_cost() {
  return static_cast<double>(ticks(pdeps)) / static_cast<double>(ticks(products));
}

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
double pdep_cost() { return 0; }
}  // namespace headrace

#endif
