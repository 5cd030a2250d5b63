// SPDX-License-Identifier: Apache-2.0
// Stored samples of one channel -> fractions of full scale as float32. Sample i stands at from + i
// * step bytes, low byte first, anywhere; integers of b bits are divided by 2^(b-1).
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace {

void samples_from_uint8(const uint8_t* from, size_t step, size_t count, float* to);  // 128 is 0
void samples_from_int16(const uint8_t* from, size_t step, size_t count, float* to);
void samples_from_int24(const uint8_t* from, size_t step, size_t count, float* to);
void samples_from_int32(const uint8_t* from, size_t step, size_t count, float* to);
void samples_from_float32(const uint8_t* from, size_t step, size_t count, float* to);
void samples_from_float64(const uint8_t* from, size_t step, size_t count, float* to);
// ITU-T G.711.
void samples_from_a_law(const uint8_t* from, size_t step, size_t count, float* to);
void samples_from_mu_law(const uint8_t* from, size_t step, size_t count, float* to);

// Integers of `bits`, already in the machine's order.
void samples_from_integers(const int32_t* from, int bits, size_t count, float* to);

// The other way: the nearest integer of 16 bits, ties to even; what lies beyond full scale becomes
// the largest or the smallest one. Says how many are NaN, for which there is none.
size_t int16_from_samples(const float* from, size_t count, int16_t* to);

}  // namespace headrace
