// SPDX-License-Identifier: Apache-2.0
// Video's colours with AVX2. Twin: the loops of yuv_rows.cc.
#include "headrace/kernels/video/yuv_rows_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx2");

namespace headrace {
namespace {

__m256i load(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
__m128i load_half(const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); }
void store(uint8_t* to, __m256i v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v); }

// The coefficients of 8-bit samples, in all lanes.
struct Lanes {
  explicit Lanes(const YuvCoefficients& by)
      : luma(_mm256_set1_epi16(by.luma)),
        offset(_mm256_set1_epi16(by.offset)),
        red_v(_mm256_set1_epi16(by.red_v)),
        green_u(_mm256_set1_epi16(by.green_u)),
        green_v(_mm256_set1_epi16(by.green_v)),
        blue_u(_mm256_set1_epi16(by.blue_u)) {}
  __m256i luma_of(__m256i eightfold) const {
    return _mm256_mulhi_epi16(_mm256_sub_epi16(eightfold, offset), luma);
  }
  __m256i luma, offset, red_v, green_u, green_v, blue_u;
};

// What 16 samples of chroma add to red, green and blue.
struct Added {
  Added(const uint8_t* u_row, const uint8_t* v_row, const Lanes& by) {
    const __m256i u = centered(u_row), v = centered(v_row);
    red = _mm256_mulhi_epi16(v, by.red_v);
    green = _mm256_add_epi16(_mm256_mulhi_epi16(u, by.green_u), _mm256_mulhi_epi16(v, by.green_v));
    blue = _mm256_mulhi_epi16(u, by.blue_u);
  }
  static __m256i centered(const uint8_t* row) {
    const __m256i words = _mm256_cvtepu8_epi16(load_half(row));
    return _mm256_sub_epi16(_mm256_slli_epi16(words, 3), _mm256_set1_epi16(1024));
  }
  __m256i red, green, blue;
};

// Note [Two columns to a sample of chroma]
void halved(const uint8_t* const yuv[3], int count, const YuvCoefficients& by,
            uint8_t* const rgb[3]) {
  const Lanes lanes(by);
  const __m256i mask = _mm256_set1_epi16(0xff << 3);
  const __m256i in_turn = _mm256_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15,  //
                                           0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
  for (int i = 0; i < count; i += 32) {
    const Added added(yuv[1] + i / 2, yuv[2] + i / 2, lanes);
    const __m256i luma = load(yuv[0] + i);
    const __m256i even = lanes.luma_of(_mm256_and_si256(_mm256_slli_epi16(luma, 3), mask));
    const __m256i odd = lanes.luma_of(_mm256_and_si256(_mm256_srli_epi16(luma, 5), mask));
    const auto put = [&](uint8_t* to, __m256i chroma) {
      const __m256i apart =
          _mm256_packus_epi16(_mm256_add_epi16(even, chroma), _mm256_add_epi16(odd, chroma));
      store(to + i, _mm256_shuffle_epi8(apart, in_turn));
    };
    put(rgb[0], added.red);
    put(rgb[1], added.green);
    put(rgb[2], added.blue);
  }
}

__m256i eightfold(const uint8_t* row) {
  return _mm256_slli_epi16(_mm256_cvtepu8_epi16(load_half(row)), 3);
}

void whole(const uint8_t* const yuv[3], int count, const YuvCoefficients& by,
           uint8_t* const rgb[3]) {
  const Lanes lanes(by);
  for (int i = 0; i < count; i += 32) {
    const Added first(yuv[1] + i, yuv[2] + i, lanes);
    const Added second(yuv[1] + i + 16, yuv[2] + i + 16, lanes);
    const __m256i left = lanes.luma_of(eightfold(yuv[0] + i));
    const __m256i right = lanes.luma_of(eightfold(yuv[0] + i + 16));
    const auto put = [&](uint8_t* to, __m256i a, __m256i b) {
      const __m256i apart =
          _mm256_packus_epi16(_mm256_add_epi16(left, a), _mm256_add_epi16(right, b));
      store(to + i, _mm256_permute4x64_epi64(apart, _MM_SHUFFLE(3, 1, 2, 0)));
    };
    put(rgb[0], first.red, second.red);
    put(rgb[1], first.green, second.green);
    put(rgb[2], first.blue, second.blue);
  }
}

// The coefficients of wider samples.
struct DeepLanes {
  explicit DeepLanes(const DeepYuvCoefficients& by)
      : luma(_mm256_set1_epi32(by.luma)),
        luma_offset(_mm256_set1_epi32(by.luma_offset)),
        chroma_offset(_mm256_set1_epi32(by.chroma_offset)),
        red_v(_mm256_set1_epi32(by.red_v)),
        green_u(_mm256_set1_epi32(by.green_u)),
        green_v(_mm256_set1_epi32(by.green_v)),
        blue_u(_mm256_set1_epi32(by.blue_u)) {}
  // With the half that rounding takes.
  __m256i luma_of(__m256i samples) const {
    return _mm256_add_epi32(_mm256_mullo_epi32(_mm256_sub_epi32(samples, luma_offset), luma),
                            _mm256_set1_epi32(1 << (kDeepShift - 1)));
  }
  __m256i luma, luma_offset, chroma_offset, red_v, green_u, green_v, blue_u;
};

struct DeepAdded {
  DeepAdded(const uint16_t* u_row, const uint16_t* v_row, const DeepLanes& by) {
    const __m256i u = _mm256_sub_epi32(_mm256_cvtepu16_epi32(load_half(u_row)), by.chroma_offset);
    const __m256i v = _mm256_sub_epi32(_mm256_cvtepu16_epi32(load_half(v_row)), by.chroma_offset);
    red = _mm256_mullo_epi32(v, by.red_v);
    green = _mm256_add_epi32(_mm256_mullo_epi32(u, by.green_u), _mm256_mullo_epi32(v, by.green_v));
    blue = _mm256_mullo_epi32(u, by.blue_u);
  }
  __m256i red, green, blue;
};

// Words of 8 sums each, `a` in the low and `b` in the high half of each lane.
__m256i rounded(__m256i a, __m256i b) {
  return _mm256_packs_epi32(_mm256_srai_epi32(a, kDeepShift), _mm256_srai_epi32(b, kDeepShift));
}

// 16 columns at a time.
void deep_halved(const uint16_t* const yuv[3], int count, const DeepYuvCoefficients& by,
                 uint8_t* const rgb[3]) {
  const DeepLanes lanes(by);
  // Of each lane's columns: even ones in front of odd ones.
  const __m256i in_turn =
      _mm256_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, -1, -1, -1, -1, -1, -1, -1, -1,  //
                       0, 4, 1, 5, 2, 6, 3, 7, -1, -1, -1, -1, -1, -1, -1, -1);
  for (int i = 0; i < count; i += 16) {
    const DeepAdded added(yuv[1] + i / 2, yuv[2] + i / 2, lanes);
    const __m256i luma = load(yuv[0] + i);
    const __m256i even = lanes.luma_of(_mm256_and_si256(luma, _mm256_set1_epi32(0xffff)));
    const __m256i odd = lanes.luma_of(_mm256_srli_epi32(luma, 16));
    const auto put = [&](uint8_t* to, __m256i chroma) {
      const __m256i words = rounded(_mm256_add_epi32(even, chroma), _mm256_add_epi32(odd, chroma));
      const __m256i apart = _mm256_shuffle_epi8(_mm256_packus_epi16(words, words), in_turn);
      const __m256i row = _mm256_permute4x64_epi64(apart, _MM_SHUFFLE(3, 3, 2, 0));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), _mm256_castsi256_si128(row));
    };
    put(rgb[0], added.red);
    put(rgb[1], added.green);
    put(rgb[2], added.blue);
  }
}

void deep_whole(const uint16_t* const yuv[3], int count, const DeepYuvCoefficients& by,
                uint8_t* const rgb[3]) {
  const DeepLanes lanes(by);
  for (int i = 0; i < count; i += 16) {
    const DeepAdded first(yuv[1] + i, yuv[2] + i, lanes);
    const DeepAdded second(yuv[1] + i + 8, yuv[2] + i + 8, lanes);
    const __m256i left = lanes.luma_of(_mm256_cvtepu16_epi32(load_half(yuv[0] + i)));
    const __m256i right = lanes.luma_of(_mm256_cvtepu16_epi32(load_half(yuv[0] + i + 8)));
    const auto put = [&](uint8_t* to, __m256i a, __m256i b) {
      const __m256i words = _mm256_permute4x64_epi64(
          rounded(_mm256_add_epi32(left, a), _mm256_add_epi32(right, b)), _MM_SHUFFLE(3, 1, 2, 0));
      const __m256i row =
          _mm256_permute4x64_epi64(_mm256_packus_epi16(words, words), _MM_SHUFFLE(3, 3, 2, 0));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), _mm256_castsi256_si128(row));
    };
    put(rgb[0], first.red, second.red);
    put(rgb[1], first.green, second.green);
    put(rgb[2], first.blue, second.blue);
  }
}

constexpr YuvKernels kKernels{halved, whole, deep_halved, deep_whole};

}  // namespace

const YuvKernels* yuv_kernels_avx2() { return &kKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const YuvKernels* yuv_kernels_avx2() { return nullptr; }
}  // namespace headrace

#endif
