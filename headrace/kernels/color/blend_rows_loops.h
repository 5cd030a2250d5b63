// SPDX-License-Identifier: Apache-2.0
// The loops of blend_rows.cc in lanes. Included by each level's file after its lanes
// (float_lanes_..., word_lanes_...), between its target pragmas. Internal to kernels/.
#pragma once

#include "headrace/kernels/color/blend_rows_levels.h"

namespace headrace {
namespace {

void in_floats(const uint8_t* value, const uint8_t* other, int count, float factor, uint8_t* out) {
  const Floats own = all(factor);
  for (int i = 0; i < count; i += kLanes) {
    const Floats rest = floats_at(other + i);
    store_cut_off(out + i, sum(rest, product(own, difference(floats_at(value + i), rest))));
  }
}

void in_numbers(const uint8_t* value, const uint8_t* other, int count, const PillowBlend& blend,
                uint8_t* out) {
  const Words offset = all_numbers(blend.offset);
  const Words slope =
      all_pairs(blend.slope >> kBlendLowBits, blend.slope & ((1 << kBlendLowBits) - 1));
  const auto drawn = [&](Words own, Words rest) {
    const Words away = words_difference(own, rest), much = words_up<kBlendLowBits>(away);
    const auto part = [&](Words pairs) {
      return numbers_down<kBlendShift>(numbers_sum(dot_of_pairs(pairs, slope), offset));
    };
    const Words by = words_of(part(paired_low(much, away)), part(paired_high(much, away)));
    return words_sum(rest, by);
  };
  for (int i = 0; i < count; i += kByteLanes) {
    const Words own = bytes_at(value + i), rest = bytes_at(other + i);
    store_saturated(out + i, drawn(low_words(own), low_words(rest)),
                    drawn(high_words(own), high_words(rest)));
  }
}

constexpr BlendKernels kKernels{in_floats, in_numbers};

}  // namespace
}  // namespace headrace
