// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/hsv_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "headrace/kernels/dispatch.h"

namespace headrace {
namespace {

// Lanes of one number, for the loop below.
using Floats = float;
using Numbers = int32_t;
constexpr int kLanes = 1;

Floats all(float v) { return v; }
Numbers all(int v) { return v; }
Numbers numbers_at(const uint8_t* from) { return *from; }
Numbers sum(Numbers a, Numbers b) { return a + b; }
Numbers subtracted(Numbers a, Numbers b) { return a - b; }
Numbers product(Numbers a, Numbers b) { return a * b; }
Numbers most_of(Numbers a, Numbers b) { return std::max(a, b); }
Numbers least_of(Numbers a, Numbers b) { return std::min(a, b); }
Numbers scaled_down(Numbers v) { return v >> 12; }
Numbers looked_up(const int32_t* table, Numbers at) { return table[at]; }
Numbers cut_off(Floats v) { return static_cast<Numbers>(v); }
Numbers to_bytes(Numbers v) { return std::clamp(v, 0, 255); }
bool equal(Numbers a, Numbers b) { return a == b; }
bool below(Numbers a, Numbers b) { return a < b; }
template <class Value>
Value chosen(bool first, Value a, Value b) {
  return first ? a : b;
}
Floats floats_of(Numbers v) { return static_cast<Floats>(v); }
Floats sum(Floats a, Floats b) { return a + b; }
Floats difference(Floats a, Floats b) { return a - b; }
Floats product(Floats a, Floats b) { return a * b; }
void store_rounded(uint8_t* to, Floats v) {
  *to = static_cast<uint8_t>(std::clamp(std::nearbyint(v), 0.0f, 255.0f));
}

}  // namespace
}  // namespace headrace

// After its lanes:
#include "headrace/kernels/hsv_rows_loops.h"

namespace headrace {
namespace {

const HsvKernels& hsv_kernels() {
  static const std::array<const HsvKernels*, 3> by_level{&kKernels, hsv_kernels_avx2(),
                                                         hsv_kernels_avx512()};
  return *by_level[static_cast<size_t>(simd_level())];
}

HsvQuotients make_quotients() {
  HsvQuotients out{};
  for (int i = 1; i < 256; ++i) {
    out.of_saturation[i] = static_cast<int32_t>(std::nearbyint((255 << 12) / (1.0 * i)));
    out.of_hue[i] = static_cast<int32_t>(std::nearbyint((180 << 12) / (6.0 * i)));
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
