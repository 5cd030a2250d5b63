// SPDX-License-Identifier: Apache-2.0
// Coefficients -> samples: libjpeg-turbo's accurate integer inverse DCT as in kernels/jpeg/idct.h,
// to the last bit, even for hostile values; one thread per block, all of it in registers.
#pragma once

#include <cstdint>

#include "headrace/kernels/batch/machine_words.h"
#include "headrace/kernels/device_jpeg/device_image.h"
#include "headrace/kernels/jpeg/idct_levels.h"

namespace headrace {

// One dimension, before the final shift. Values and their sums are 16 bits wide; sums of products
// wrap at 32 bits.
HEADRACE_HD inline void inverse_transform(const int32_t (&x)[8], uint32_t round,
                                          uint32_t (&out)[8]) {
  const auto product = [](int32_t value, int32_t factor) {
    return static_cast<uint32_t>(value * factor);
  };
  const auto word = [](int32_t sum) { return words::low_half(static_cast<uint32_t>(sum)); };
  const uint32_t even0 = product(word(x[0] + x[4]), 1 << kIdctBits) + round;
  const uint32_t even1 = product(word(x[0] - x[4]), 1 << kIdctBits) + round;
  const uint32_t even2 = product(x[2], kF0541) + product(x[6], kF0541 - kF1847);
  const uint32_t even3 = product(x[2], kF0541 + kF0765) + product(x[6], kF0541);
  const int32_t z3 = word(x[3] + x[7]), z4 = word(x[1] + x[5]);
  const uint32_t turn3 = product(z3, kF1175 - kF1961) + product(z4, kF1175);
  const uint32_t turn4 = product(z3, kF1175) + product(z4, kF1175 - kF0390);
  const uint32_t odd0 = product(x[7], kF0298 - kF0899) - product(x[1], kF0899) + turn3;
  const uint32_t odd1 = product(x[5], kF2053 - kF2562) - product(x[3], kF2562) + turn4;
  const uint32_t odd2 = product(x[3], kF3072 - kF2562) - product(x[5], kF2562) + turn3;
  const uint32_t odd3 = product(x[1], kF1501 - kF0899) - product(x[7], kF0899) + turn4;
  const uint32_t sum0 = even0 + even3, sum1 = even1 + even2, sum2 = even1 - even2,
                 sum3 = even0 - even3;
  out[0] = sum0 + odd3;
  out[1] = sum1 + odd2;
  out[2] = sum2 + odd1;
  out[3] = sum3 + odd0;
  out[4] = sum3 - odd0;
  out[5] = sum2 - odd1;
  out[6] = sum1 - odd2;
  out[7] = sum0 - odd3;
}

// 64 coefficients and 64 quantization steps, in natural order and aligned to 16 bytes -> 8 rows of
// 8 samples, `stride` bytes apart and aligned to 8.
HEADRACE_HD inline void transform_block(const int16_t* coefficients, const int16_t* steps,
                                        uint8_t* out, int64_t stride) {
  int32_t x[8][8];
  uint32_t below = 0;  // the first row
  HEADRACE_UNROLLED
  for (int row = 0; row < 8; ++row) {
    const words::Together<4> values = words::load<4>(coefficients + row * 8);
    const words::Together<4> by = words::load<4>(steps + row * 8);
    HEADRACE_UNROLLED
    for (int i = 0; i < 4; ++i) {
      const uint32_t two = values.word[i], step = by.word[i];
      if (row > 0) below |= two;
      x[row][2 * i] =
          words::low_half(static_cast<uint32_t>(words::low_half(two) * words::low_half(step)));
      x[row][2 * i + 1] =
          words::low_half(static_cast<uint32_t>(words::high_half(two) * words::high_half(step)));
    }
  }
  // Note [Where the first row wraps]: with two bits less, nothing can saturate.
  const uint32_t surplus = below ? 0 : 18;
  HEADRACE_UNROLLED
  for (int column = 0; column < 8; ++column) {
    int32_t in[8];
    uint32_t sums[8];
    HEADRACE_UNROLLED
    for (int row = 0; row < 8; ++row) in[row] = x[row][column];
    in[0] = static_cast<int32_t>(static_cast<uint32_t>(in[0]) << surplus) >> surplus;
    inverse_transform(in, kIdctRound1, sums);
    HEADRACE_UNROLLED
    for (int row = 0; row < 8; row += 2) {
      const uint32_t two =
          words::saturated_pair(static_cast<int32_t>(sums[row]) >> kIdctShift1,
                                static_cast<int32_t>(sums[row + 1]) >> kIdctShift1);
      x[row][column] = words::low_half(two);
      x[row + 1][column] = words::high_half(two);
    }
  }
  HEADRACE_UNROLLED
  for (int row = 0; row < 8; ++row, out += stride) {
    uint32_t sums[8];
    inverse_transform(x[row], kIdctRound2, sums);
    const auto value = [&](int i) { return static_cast<int32_t>(sums[i]) >> kIdctShift2; };
    constexpr uint32_t kSigns = 0x80808080;  // -128 -> 0
    words::store(out,
                 words::Together<2>{
                     {words::saturated_bytes(value(0), value(1), value(2), value(3)) ^ kSigns,
                      words::saturated_bytes(value(4), value(5), value(6), value(7)) ^ kSigns}});
  }
}

struct TransformBlocks {
  const DeviceImage* images = nullptr;
  const PieceJob* jobs = nullptr;
  const int16_t* coefficients = nullptr;
  const int16_t* steps = nullptr;  // tables of 64
  uint8_t* samples = nullptr;
  int64_t count = 0;  // of jobs

  HEADRACE_HD int64_t items() const { return count * kPiece; }

  HEADRACE_HD void operator()(int64_t item) const {
    const PieceJob& job = jobs[item / kPiece];
    const DeviceImage& image = images[job.image];
    const DevicePlane& plane = image.plane[job.component];
    const int32_t number = static_cast<int32_t>(job.first + item % kPiece);
    const int32_t row = number / plane.columns, column = number - row * plane.columns;
    if (row >= plane.rows) return;
    const int32_t y = plane.first_row + row, x = plane.first_column + column;
    const int32_t mcu =
        ((y >> plane.v_shift) - image.first_mcu_row) * image.mcu_columns + (x >> plane.h_shift);
    const int32_t y_in = y & ((1 << plane.v_shift) - 1), x_in = x & ((1 << plane.h_shift) - 1);
    const int64_t block = image.first_block + int64_t{mcu} * image.blocks + plane.first_block +
                          (y_in << plane.h_shift) + x_in;
    transform_block(coefficients + block * 64, steps + plane.quantization * 64,
                    samples + plane.samples + int64_t{row} * 8 * plane.stride + column * 8,
                    plane.stride);
  }
};

}  // namespace headrace
