// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/content_hash.h"

#include "headrace/kernels/dispatch.h"

// Header-only: every function becomes static in this file.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace headrace {

uint64_t content_hash_scalar(const uint8_t* bytes, size_t count, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, count, seed);
}

uint64_t content_hash(std::span<const uint8_t> bytes, uint64_t seed) {
#if defined(__x86_64__)
  static const bool wide = simd_level() != SimdLevel::kScalar;
  if (wide) return content_hash_avx2(bytes.data(), bytes.size(), seed);
#endif
  return content_hash_scalar(bytes.data(), bytes.size(), seed);
}

}  // namespace headrace
