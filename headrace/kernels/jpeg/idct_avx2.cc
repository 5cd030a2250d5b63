// SPDX-License-Identifier: Apache-2.0
// The inverse DCT with AVX2. Scalar reference: idct_block().
#include "headrace/kernels/jpeg/idct_core_avx2.h"
#include "headrace/kernels/jpeg/idct_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx2");

namespace headrace {
namespace {

void idct_row_vectors(const IdctTable& table, const BlockRow& blocks, int count, uint8_t* out,
                      ptrdiff_t stride) {
  BlockWalk walk(blocks);
  IdctTwos twos(table.step.data(), stride);
  for (int done = 0; done < count; done += 2, out += 16) {
    const int16_t* const a = walk.next();
    const int16_t* const b = done + 1 < count ? walk.next() : a;
    IdctTwo two;
#pragma GCC unroll 8
    for (int v = 0; v < 8; ++v) {
      two.group[v] = _mm256_inserti128_si256(
          _mm256_castsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(a + 8 * v))),
          _mm_load_si128(reinterpret_cast<const __m128i*>(b + 8 * v)), 1);
    }
    twos.add(two, out);
  }
  twos.finish();
}

}  // namespace

IdctRow idct_row_avx2() { return idct_row_vectors; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
IdctRow idct_row_avx2() { return nullptr; }
}  // namespace headrace

#endif
