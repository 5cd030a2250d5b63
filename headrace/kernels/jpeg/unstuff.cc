// SPDX-License-Identifier: Apache-2.0

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/jpeg/huffman.h"
#include "headrace/kernels/jpeg/unstuff_levels.h"

namespace headrace {
namespace {

// Null for the scalar level.
UnstuffPrefix prefix_of_level() {
  static const ByLevel<UnstuffPrefix (*)()> by_level{+[] { return UnstuffPrefix{}; }, unstuff_avx2,
                                                     unstuff_avx512, unstuff_neon};
  return by_level.in_force()();
}

}  // namespace

Unstuffed unstuff(std::span<const uint8_t> in, uint8_t* out) {
  Unstuffed at;
  if (const UnstuffPrefix prefix = prefix_of_level()) at = prefix(in.data(), in.size(), out);
  while (at.read < in.size()) {
    const uint8_t byte = in[at.read];
    if (byte == 0xff) {
      if (at.read + 1 == in.size() || in[at.read + 1] != 0) break;
      ++at.read;
    }
    ++at.read;
    out[at.written++] = byte;
  }
  return at;
}

}  // namespace headrace
