// SPDX-License-Identifier: Apache-2.0
#ifndef HEADRACE_LEVEL

#include "headrace/kernels/jpeg/huffman.h"

namespace headrace::scalar {
namespace {

// A SIMD level handles a prefix that ends before the first marker and not after a 0xff; the scalar
// loop does the rest, and does everything for the scalar level.
Unstuffed prefix(const uint8_t*, size_t, uint8_t*) { return {}; }

}  // namespace
}  // namespace headrace::scalar

#define HEADRACE_OWN_SCALAR
#define HEADRACE_KERNEL "headrace/kernels/jpeg/unstuff.cc"
#define HEADRACE_AVX512_KERNEL "headrace/kernels/jpeg/unstuff_avx512.h"
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

#else  // at each SIMD level: copies a vector, then continues after its first 0xff

#include HEADRACE_LANES

namespace headrace::HEADRACE_LEVEL {
namespace {

Unstuffed prefix(const uint8_t* in, size_t size, uint8_t* out) {
  Unstuffed at;
  while (at.read + kByteLanes + 1 <= size) {
    const Words bytes = LoadBytes(in + at.read);
    StoreBytes(out + at.written, bytes);
    const auto before = static_cast<size_t>(FindFirst(bytes, 0xff));
    if (before == kByteLanes) {  // a constant, so that the next vector does not wait for this one
      at.read += kByteLanes;
      at.written += kByteLanes;
      continue;
    }
    at.read += before;
    at.written += before;
    if (in[at.read + 1] != 0) break;
    at.read += 2;
    at.written += 1;
  }
  return at;
}

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL

#endif
