// SPDX-License-Identifier: Apache-2.0
// Uses 16-byte stores, which every x86-64 CPU has: four of them fill a write-combining buffer, and
// wider ones were no faster (Zen 5).
#include "headrace/kernels/non_temporal_copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace headrace {

#if defined(__x86_64__)

void copy_non_temporal(void* to, const void* from, size_t bytes) {
  constexpr size_t kLine = 64;
  auto* out = static_cast<uint8_t*>(to);
  const auto* in = static_cast<const uint8_t*>(from);
  const size_t past = reinterpret_cast<uintptr_t>(out) % kLine;
  const size_t head = std::min(bytes, past == 0 ? 0 : kLine - past);
  if (head > 0) std::memcpy(out, in, head);
  out += head;
  in += head;
  bytes -= head;
  for (; bytes >= kLine; bytes -= kLine, in += kLine, out += kLine) {
    const auto* const four = reinterpret_cast<const __m128i*>(in);
    auto* const line = reinterpret_cast<__m128i*>(out);
    const __m128i a = _mm_loadu_si128(four), b = _mm_loadu_si128(four + 1);
    const __m128i c = _mm_loadu_si128(four + 2), d = _mm_loadu_si128(four + 3);
    _mm_stream_si128(line, a);
    _mm_stream_si128(line + 1, b);
    _mm_stream_si128(line + 2, c);
    _mm_stream_si128(line + 3, d);
  }
  if (bytes > 0) std::memcpy(out, in, bytes);
  _mm_sfence();  // non-temporal stores are not ordered by releasing a mutex
}

#else

void copy_non_temporal(void* to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

#endif

}  // namespace headrace
