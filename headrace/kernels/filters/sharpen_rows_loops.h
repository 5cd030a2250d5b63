// SPDX-License-Identifier: Apache-2.0
// The loops of sharpen_rows.cc in lanes. Included by each level's file after its lanes
// (float_lanes_..., word_lanes_...), between its target pragmas. Internal to kernels/.
#pragma once

#include <algorithm>

#include "headrace/kernels/filters/sharpen_rows_levels.h"

namespace headrace {
namespace {

Words thirteenth(Words total) {
  const Words twice = words_sum(words_sum(total, total), all_words(13));
  return words_down<kThirteenthShift>(high_product(twice, all_words(kThirteenthFactor)));
}

// Of the bytes at an even place and at the next one, their neighbours lie in what is loaded one
// byte before and one byte after: the even one is the first's odd, the odd one the second's even.
Words blur_at(const ThreeRows& in, int x) {
  const Words ones = all_bytes(1, 1);
  Words even = all_words(0), odd = even;
  for (const uint8_t* row : {in.above, in.below}) {
    const Words before = bytes_at(row + x - 1), after = bytes_at(row + x + 1);
    even = words_sum(even, words_sum(dot_of_bytes(before, ones), even_bytes(after)));
    odd = words_sum(odd, words_sum(odd_bytes(before), dot_of_bytes(after, ones)));
  }
  const Words before = bytes_at(in.row + x - 1), after = bytes_at(in.row + x + 1);
  even = words_sum(even, words_sum(dot_of_bytes(before, all_bytes(1, 5)), even_bytes(after)));
  odd = words_sum(odd, words_sum(odd_bytes(before), dot_of_bytes(after, all_bytes(5, 1))));
  return together(thirteenth(even), thirteenth(odd));
}

bool blur(const ThreeRows& in, int width, uint8_t* out) {
  const int count = width - 2;
  if (count < kByteLanes) return false;
  for (int i = 0; i < count; i += kByteLanes) {
    const int first = std::min(i, count - kByteLanes);  // the last ones overlap
    store_bytes_of(out + first, blur_at(in, 1 + first));
  }
  return true;
}

void draw_away(const uint8_t* value, const uint8_t* other, int count, float rest, uint8_t* out) {
  for (int i = 0; i < count; i += kLanes) {
    const Floats own = floats_at(value + i);
    store_cut_off(out + i, fused(difference(floats_at(other + i), own), all(rest), own));
  }
}

constexpr SharpenKernels kKernels{blur, draw_away};

}  // namespace
}  // namespace headrace
