// SPDX-License-Identifier: Apache-2.0
// Frames of a signal with AVX2. Twin: the same loops in frame_kernels.cc.
#include "headrace/kernels/audio/frame_kernels_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "headrace/kernels/target.h"

#define HEADRACE_LEVEL avx2

HEADRACE_TARGET("avx2,fma");

#include "headrace/kernels/lanes/avx2.h"

namespace headrace::HEADRACE_LEVEL {
namespace {

// Within each half, the element j of vector i is exchanged with element i of vector j.
inline void transpose_quarters(Floats (&v)[4]) {
  const Floats low01 = _mm256_unpacklo_ps(v[0], v[1]), high01 = _mm256_unpackhi_ps(v[0], v[1]);
  const Floats low23 = _mm256_unpacklo_ps(v[2], v[3]), high23 = _mm256_unpackhi_ps(v[2], v[3]);
  v[0] = _mm256_shuffle_ps(low01, low23, 0x44);
  v[1] = _mm256_shuffle_ps(low01, low23, 0xEE);
  v[2] = _mm256_shuffle_ps(high01, high23, 0x44);
  v[3] = _mm256_shuffle_ps(high01, high23, 0xEE);
}
// Four samples of each frame: v[k] has sample k of all.
inline void gather_rows(const float* from, int64_t hop, Floats (&v)[4]) {
  for (int i = 0; i < 4; ++i) {
    const __m128 low = _mm_loadu_ps(from + i * hop), high = _mm_loadu_ps(from + (i + 4) * hop);
    v[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
  }
  transpose_quarters(v);
}
inline void scatter_rows(Floats (&v)[4], int64_t hop, float* to) {
  transpose_quarters(v);
  for (int i = 0; i < 4; ++i) {
    _mm_storeu_ps(to + i * hop, _mm256_castps256_ps128(v[i]));
    _mm_storeu_ps(to + (i + 4) * hop, _mm256_extractf128_ps(v[i], 1));
  }
}

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL

// After its lanes:
#include "headrace/kernels/audio/frame_kernels_loops.h"

namespace headrace {

const FrameKernels* frame_kernels_avx2() { return &avx2::kKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const FrameKernels* frame_kernels_avx2() { return nullptr; }
}  // namespace headrace

#endif
