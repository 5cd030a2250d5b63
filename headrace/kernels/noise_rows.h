// SPDX-License-Identifier: Apache-2.0
// Random numbers by position. Each number is a function of (key, row, column) alone, so rows may be
// generated in any order, by any thread and at any SIMD level.
//
// Any thread may call these functions. They work in tiles of kNoiseTile numbers, so a row of random
// numbers needs room for whole tiles.
#pragma once

#include <cstdint>

namespace headrace {

inline constexpr int kNoiseTile = 64;
inline constexpr int noise_room(int count) {
  return (count + kNoiseTile - 1) / kNoiseTile * kNoiseTile;
}

// 32 random bits each. REQUIRES: room for noise_room(count) numbers.
void random_row(uint64_t key, uint32_t row, int count, uint32_t* out);
// Rows of uniform numbers in [-1, 1), stored as columns: number y of row x is out[y * stride + x].
// REQUIRES: stride is a multiple of 16, at least `width`, and the last row has room for `stride`
// numbers, too.
void uniform_columns(uint64_t key, int width, int height, int64_t stride, float* out);
// Standard normal numbers, between -5.8 and 5.8; same room required.
void normal_row(uint64_t key, uint32_t row, int count, float* out);

// Salt-and-pepper noise on an 8-bit row: samples whose random number, without its lowest bit, is
// less than `white` become 255, and the others that are below `either` become 0. May read and write
// up to 63 numbers past `count`.
void salt_and_pepper_row(const uint8_t* in, const uint32_t* numbers, int count, int32_t white,
                         int32_t either, uint8_t* out);

// torchvision's noise on 8-bit samples: mean + noise * sigma, truncated to an integer; then clamped
// to 0 to 255, or taken modulo 256. May read and write up to 63 numbers past `count`.
struct ByteNoise {
  float mean = 0, sigma = 0;
  bool clip = true;
};
void add_noise_row(const uint8_t* in, const float* noise, int count, const ByteNoise& how,
                   uint8_t* out);

}  // namespace headrace
