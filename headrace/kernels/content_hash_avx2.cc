// SPDX-License-Identifier: Apache-2.0
// content_hash() with AVX2: xxHash's own vector loop. Scalar reference: the same header without it.
#include "headrace/kernels/content_hash.h"

#if defined(__x86_64__)

// Everything that <xxhash.h> includes, so that none of it is compiled for AVX2.
#include <immintrin.h>

#include <climits>
#include <cstdlib>
#include <cstring>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx2");

#define XXH_INLINE_ALL
#define XXH_VECTOR XXH_AVX2
#include <xxhash.h>

namespace headrace {

uint64_t content_hash_avx2(const uint8_t* bytes, size_t count, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, count, seed);
}

}  // namespace headrace

HEADRACE_TARGET_END;

#endif
