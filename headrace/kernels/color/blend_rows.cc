// SPDX-License-Identifier: Apache-2.0
//
// Note [Whole numbers that blend as floats]: Pillow computes other + factor * difference in
// float32, which takes lanes of 32 bits through three conversions. Where the sum is not rounded
// across a whole number it is other + floor(rounded factor * difference), and of 511 differences a
// line of whole numbers has the same floors. So the line is looked for and compared at each
// difference; a factor that has none (one of a few hundred; of hundredths one of seven) is blended
// in floats.
#include "headrace/kernels/color/blend_rows.h"

#include <cmath>
#include <cstddef>

#include "headrace/kernels/color/blend_rows_levels.h"
#include "headrace/kernels/dispatch.h"

namespace headrace {
namespace {

// Null for the scalar level.
const BlendKernels* kernels() {
  static const ByLevel<const BlendKernels*> by_level{nullptr, blend_kernels_avx2(),
                                                     blend_kernels_avx512(), blend_kernels_neon()};
  return by_level.in_force();
}

}  // namespace

PillowBlend pillow_blend(float factor) {
  PillowBlend blend{.factor = factor};
  if (!(factor >= 0 && factor < 2)) return blend;
  constexpr int kOne = 1 << kBlendShift;
  constexpr float kHalfUlp = 1.0f / (1 << 17);  // of a sum from 128 to 256
  const int slope = std::min(static_cast<int>(std::lrint(factor * kOne)), 2 * kOne - 1);
  int least = 0, most = kOne;  // offsets that no difference refutes
  for (int difference = 1; difference < 256; ++difference) {
    const float product = factor * static_cast<float>(difference);
    const int floor = static_cast<int>(product);
    const float above = product - static_cast<float>(floor);
    const int ceiling = floor + (above > 0);
    if (above > 0 && (above <= kHalfUlp || 1 - above <= kHalfUlp)) return blend;
    // Of the difference and of its negative: what is floored lies from `floor` to below the next,
    // and from -ceiling.
    const int along = slope * difference - floor * kOne;
    const int against = ceiling * kOne - slope * difference;
    least = std::max({least, -along, -against});
    most = std::min({most, kOne - 1 - along, kOne - 1 - against});
  }
  if (least > most) return blend;
  blend.slope = slope;
  blend.offset = least;
  return blend;
}

void blend_row_as_pillow(const uint8_t* value, const uint8_t* other, int count,
                         const PillowBlend& blend, uint8_t* out) {
  if (const BlendKernels* const simd = kernels()) {
    if (blend.offset == PillowBlend::kNone) {
      return simd->in_floats(value, other, count, blend.factor, out);
    }
    return simd->in_numbers(value, other, count, blend, out);
  }
  for (int i = 0; i < count; ++i) out[i] = blend_as_pillow(value[i], other[i], blend.factor);
}

}  // namespace headrace
