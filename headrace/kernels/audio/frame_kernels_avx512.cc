// SPDX-License-Identifier: Apache-2.0
// Frames of a signal with AVX-512. Twin: the loops in frame_kernels.cc.
#include "headrace/kernels/audio/frame_kernels_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "headrace/kernels/target.h"

#define HEADRACE_LEVEL avx512

HEADRACE_TARGET("avx512f,avx512bw,avx512dq,avx512vl");

#include "headrace/kernels/lanes/avx512.h"

namespace headrace::HEADRACE_LEVEL {
namespace {

// Within each quarter, the element j of vector i is exchanged with element i of vector j.
inline void transpose_quarters(Floats (&v)[4]) {
  const Floats low01 = _mm512_unpacklo_ps(v[0], v[1]), high01 = _mm512_unpackhi_ps(v[0], v[1]);
  const Floats low23 = _mm512_unpacklo_ps(v[2], v[3]), high23 = _mm512_unpackhi_ps(v[2], v[3]);
  v[0] = _mm512_shuffle_ps(low01, low23, 0x44);
  v[1] = _mm512_shuffle_ps(low01, low23, 0xEE);
  v[2] = _mm512_shuffle_ps(high01, high23, 0x44);
  v[3] = _mm512_shuffle_ps(high01, high23, 0xEE);
}
// Four samples of each frame: v[k] has sample k of all.
inline void gather_rows(const float* from, int64_t hop, Floats (&v)[4]) {
  for (int i = 0; i < 4; ++i) {
    const float* const at = from + i * hop;
    v[i] = _mm512_castps128_ps512(_mm_loadu_ps(at));
    v[i] = _mm512_insertf32x4(v[i], _mm_loadu_ps(at + 4 * hop), 1);
    v[i] = _mm512_insertf32x4(v[i], _mm_loadu_ps(at + 8 * hop), 2);
    v[i] = _mm512_insertf32x4(v[i], _mm_loadu_ps(at + 12 * hop), 3);
  }
  transpose_quarters(v);
}
inline void scatter_rows(Floats (&v)[4], int64_t hop, float* to) {
  transpose_quarters(v);
  for (int i = 0; i < 4; ++i) {
    float* const at = to + i * hop;
    _mm_storeu_ps(at, _mm512_castps512_ps128(v[i]));
    _mm_storeu_ps(at + 4 * hop, _mm512_extractf32x4_ps(v[i], 1));
    _mm_storeu_ps(at + 8 * hop, _mm512_extractf32x4_ps(v[i], 2));
    _mm_storeu_ps(at + 12 * hop, _mm512_extractf32x4_ps(v[i], 3));
  }
}

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL

// After its lanes:
#include "headrace/kernels/audio/frame_kernels_loops.h"

namespace headrace {

const FrameKernels* frame_kernels_avx512() { return &avx512::kKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const FrameKernels* frame_kernels_avx512() { return nullptr; }
}  // namespace headrace

#endif
