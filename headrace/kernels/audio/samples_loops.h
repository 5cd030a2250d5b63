// SPDX-License-Identifier: Apache-2.0
// Conversion of stored samples with AVX2, for one channel or two interleaved ones. samples.cc has
// the scalar reference, and includes this file for both x86 SIMD levels. Internal to kernels/.

namespace headrace::HEADRACE_LEVEL {
namespace {

constexpr size_t kFrames = 8;

__m256i at(const uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
__m256i at(const uint8_t* low, const uint8_t* high) {
  return _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(high),
                             reinterpret_cast<const __m128i*>(low));
}
void store_scaled(__m256i integers, float scale, float* to) {
  _mm256_storeu_ps(to, _mm256_mul_ps(_mm256_cvtepi32_ps(integers), _mm256_set1_ps(scale)));
}

size_t int16(const uint8_t* from, size_t step, size_t count, float scale, float* to) {
  size_t i = 0;
  if (step == 2) {
    for (; i + kFrames <= count; i += kFrames) {
      const auto* const eight = reinterpret_cast<const __m128i*>(from + i * step);
      store_scaled(_mm256_cvtepi16_epi32(_mm_loadu_si128(eight)), scale, to + i);
    }
  } else if (step == 4) {
    for (; i + kFrames < count; i += kFrames) {
      const __m256i low = _mm256_slli_epi32(at(from + i * step), 16);
      store_scaled(_mm256_srai_epi32(low, 16), scale, to + i);
    }
  }
  return i;
}

// Shuffle: each lane's bytes to the upper three bytes of its number; -1 gives 0.
__m256i spread(__m256i bytes, __m128i places) {
  return _mm256_shuffle_epi8(bytes, _mm256_broadcastsi128_si256(places));
}

size_t int24(const uint8_t* from, size_t step, size_t count, float scale, float* to) {
  constexpr size_t kMaxOverread = 2;  // frames
  size_t i = 0;
  if (step == 3) {
    const __m128i four = _mm_setr_epi8(-1, 0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11);
    for (; i + kFrames + kMaxOverread <= count; i += kFrames) {
      const uint8_t* const first = from + i * step;
      store_scaled(spread(at(first, first + 12), four), scale, to + i);
    }
  } else if (step == 6) {
    const __m128i first_two =
        _mm_setr_epi8(-1, 0, 1, 2, -1, 6, 7, 8, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m128i last_two =
        _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 1, 2, -1, 6, 7, 8);
    for (; i + kFrames + kMaxOverread <= count; i += kFrames) {
      const uint8_t* const first = from + i * step;
      const __m256i a = spread(at(first, first + 24), first_two);
      const __m256i b = spread(at(first + 12, first + 36), last_two);
      store_scaled(_mm256_or_si256(a, b), scale, to + i);
    }
  }
  return i;
}

// Every second one of 16 words.
__m256 every_other(const uint8_t* from) {
  const __m256 a = _mm256_castsi256_ps(at(from)), b = _mm256_castsi256_ps(at(from + 32));
  const __m256d pairs = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88));
  return _mm256_castpd_ps(_mm256_permute4x64_pd(pairs, 0xD8));
}

size_t int32(const uint8_t* from, size_t step, size_t count, float scale, float* to) {
  size_t i = 0;
  if (step == 4) {
    for (; i + kFrames <= count; i += kFrames) store_scaled(at(from + i * step), scale, to + i);
  } else if (step == 8) {
    for (; i + kFrames < count; i += kFrames) {
      store_scaled(_mm256_castps_si256(every_other(from + i * step)), scale, to + i);
    }
  }
  return i;
}

size_t float32(const uint8_t* from, size_t step, size_t count, float* to) {
  size_t i = 0;
  if (step != 8) return i;
  for (; i + kFrames < count; i += kFrames) _mm256_storeu_ps(to + i, every_other(from + i * step));
  return i;
}

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL
