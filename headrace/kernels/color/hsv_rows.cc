// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/color/hsv_rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/float_lanes_scalar.h"

// After its lanes:
#include "headrace/kernels/color/hsv_rows_loops.h"

namespace headrace {
namespace {

const HsvKernels& hsv_kernels() {
  static const ByLevel<const HsvKernels*> by_level{&kKernels, hsv_kernels_avx2(),
                                                   hsv_kernels_avx512(), hsv_kernels_neon()};
  return *by_level.in_force();
}

HsvQuotients make_quotients() {
  HsvQuotients out{};
  for (int i = 1; i < 256; ++i) {
    out.of_saturation[i] = static_cast<int32_t>(std::nearbyint((255 << kHsvBits) / (1.0 * i)));
    out.of_hue[i] = static_cast<int32_t>(std::nearbyint((180 << kHsvBits) / (6.0 * i)));
  }
  return out;
}

}  // namespace

void change_hsv_rows(const uint8_t* const rgb[3], int count, const HsvChange& change,
                     uint8_t* const out[3]) {
  static const HsvQuotients quotients = make_quotients();
  hsv_kernels().change(rgb, count, change, quotients, out);
}

}  // namespace headrace
