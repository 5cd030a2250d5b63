// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/jpeg/huffman_lane.h"
#include "headrace/kernels/jpeg/huffman_levels.h"
#include "headrace/kernels/target.h"
// These need the definitions above.
#include "headrace/kernels/jpeg/huffman_walk_loops.h"

namespace headrace {

HuffmanWalk huffman_walk_plain() { return walk_any; }

}  // namespace headrace
