// SPDX-License-Identifier: Apache-2.0
// The same loop with BMI2, whose shifts take their count from any register. Scalar reference:
// huffman_walk.cc.
#include "headrace/kernels/jpeg/huffman_lane.h"
#include "headrace/kernels/jpeg/huffman_levels.h"
#include "headrace/kernels/target.h"

#if defined(__x86_64__)

HEADRACE_TARGET("bmi,bmi2");

#include "headrace/kernels/jpeg/huffman_walk_loops.h"

namespace headrace {

HuffmanWalk huffman_walk_bmi2() { return walk_any; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
HuffmanWalk huffman_walk_bmi2() { return nullptr; }
}  // namespace headrace

#endif
