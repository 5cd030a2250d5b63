// SPDX-License-Identifier: Apache-2.0
// The inverse DCT with AVX-512. Scalar reference: idct_block().
#include "headrace/kernels/jpeg/idct_core_avx512.h"
#include "headrace/kernels/jpeg/idct_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni");

namespace headrace {
namespace {

// 32 bytes of each of two blocks.
__m512i load_two(const int16_t* a, const int16_t* b) {
  return _mm512_inserti64x4(
      _mm512_castsi256_si512(_mm256_load_si256(reinterpret_cast<const __m256i*>(a))),
      _mm256_load_si256(reinterpret_cast<const __m256i*>(b)), 1);
}

[[gnu::always_inline]] inline IdctQuad next_quad(BlockWalk& walk, int left) {
  const int16_t* block[4];
  block[0] = walk.next();
#pragma GCC unroll 3
  for (int b = 1; b < 4; ++b) block[b] = b < left ? walk.next() : block[0];
  IdctQuad quad;
#pragma GCC unroll 4
  for (int g = 0; g < 4; ++g) {
    const __m512i low = load_two(block[0] + 16 * g, block[1] + 16 * g);
    const __m512i high = load_two(block[2] + 16 * g, block[3] + 16 * g);
    quad.group[2 * g] = _mm512_shuffle_i32x4(low, high, 0x88);
    quad.group[2 * g + 1] = _mm512_shuffle_i32x4(low, high, 0xdd);
  }
  return quad;
}

void idct_row_vectors(const IdctTable& table, const BlockRow& blocks, int count, uint8_t* out,
                      ptrdiff_t stride) {
  BlockWalk walk(blocks);
  IdctQuads quads(table.step.data(), stride);
  for (int left = count; left > 0; left -= 4, out += 32) quads.add(next_quad(walk, left), out);
  quads.finish();
}

}  // namespace

IdctRow idct_row_avx512() { return idct_row_vectors; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
IdctRow idct_row_avx512() { return nullptr; }
}  // namespace headrace

#endif
