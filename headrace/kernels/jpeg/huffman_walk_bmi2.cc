// SPDX-License-Identifier: Apache-2.0
// The same loop with BMI2, whose shifts take their count from any register. Twin: huffman_walk.cc.
#include "headrace/kernels/jpeg/huffman_lane.h"
#include "headrace/kernels/jpeg/huffman_levels.h"

#if defined(__x86_64__)

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("bmi,bmi2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("bmi,bmi2")
#endif

#include "headrace/kernels/jpeg/huffman_walk_loop.h"

namespace headrace {

HuffmanWalk huffman_walk_bmi2() { return walk_any; }

}  // namespace headrace

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else

namespace headrace {
HuffmanWalk huffman_walk_bmi2() { return nullptr; }
}  // namespace headrace

#endif
