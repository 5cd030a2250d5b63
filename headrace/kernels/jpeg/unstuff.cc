// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/jpeg/huffman.h"

namespace headrace::scalar {
namespace {

// A level does a prefix that ends before the first marker and not after a 0xff; the loop of all
// levels the rest, and all of it here.
Unstuffed prefix(const uint8_t*, size_t, uint8_t*) { return {}; }

}  // namespace
}  // namespace headrace::scalar

#define HEADRACE_OWN_SCALAR
#define HEADRACE_AVX2_KERNEL "headrace/kernels/jpeg/unstuff_avx2.h"
#define HEADRACE_AVX512_KERNEL "headrace/kernels/jpeg/unstuff_avx512.h"
#define HEADRACE_NEON_KERNEL "headrace/kernels/jpeg/unstuff_neon.h"
#include "headrace/kernels/each_level.h"

namespace headrace {

Unstuffed unstuff(std::span<const uint8_t> in, uint8_t* out) {
  Unstuffed at = HEADRACE_BY_LEVEL(prefix)(in.data(), in.size(), out);
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
