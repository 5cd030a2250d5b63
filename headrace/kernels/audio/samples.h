// SPDX-License-Identifier: Apache-2.0
// Converts stored samples of one channel to float32 fractions of full scale. Sample i is at from +
// i * step bytes, little-endian, unaligned; b-bit integers are divided by 2^(b-1).
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace {

// uint8: 128 is silence.
void samples_from_uint8(const uint8_t* from, size_t step, size_t count, float* to);
void samples_from_int16(const uint8_t* from, size_t step, size_t count, float* to);
void samples_from_int24(const uint8_t* from, size_t step, size_t count, float* to);
void samples_from_int32(const uint8_t* from, size_t step, size_t count, float* to);
void samples_from_float32(const uint8_t* from, size_t step, size_t count, float* to);
void samples_from_float64(const uint8_t* from, size_t step, size_t count, float* to);
// ITU-T G.711.
void samples_from_a_law(const uint8_t* from, size_t step, size_t count, float* to);
void samples_from_mu_law(const uint8_t* from, size_t step, size_t count, float* to);

// Integers of `bits` bits, in native byte order.
void samples_from_integers(const int32_t* from, int bits, size_t count, float* to);

// The inverse: rounds to the nearest 16-bit integer, ties to even, and saturates. Returns the
// number of NaNs, which cannot be converted.
size_t int16_from_samples(const float* from, size_t count, int16_t* to);

}  // namespace headrace
