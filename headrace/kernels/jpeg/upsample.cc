// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/jpeg/upsample.h"

#include <cstddef>
#include <cstring>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/jpeg/upsample_levels.h"

namespace headrace {
namespace {

void h2v1(const uint8_t* in, int count, uint8_t* out) {
  for (int i = 0; i < count; ++i) {
    out[2 * i] = static_cast<uint8_t>((3 * in[i] + in[i - 1] + 1) >> 2);
    out[2 * i + 1] = static_cast<uint8_t>((3 * in[i] + in[i + 1] + 2) >> 2);
  }
}

void h2v2(const uint8_t* near, const uint8_t* far, int count, uint8_t* out) {
  int before = 3 * near[-1] + far[-1], here = 3 * near[0] + far[0];
  for (int i = 0; i < count; ++i) {
    const int after = 3 * near[i + 1] + far[i + 1];
    out[2 * i] = static_cast<uint8_t>((3 * here + before + 8) >> 4);
    out[2 * i + 1] = static_cast<uint8_t>((3 * here + after + 7) >> 4);
    before = here;
    here = after;
  }
}

void h1v2(const uint8_t* near, const uint8_t* far, int bias, int count, uint8_t* out) {
  for (int i = 0; i < count; ++i) {
    out[i] = static_cast<uint8_t>((3 * near[i] + far[i] + bias) >> 2);
  }
}

constexpr UpsampleKernels kScalar{h2v1, h2v2, h1v2};

const UpsampleKernels& kernels() {
  static const ByLevel<const UpsampleKernels*> by_level{
      &kScalar, upsample_kernels_avx2(), upsample_kernels_avx512(), upsample_kernels_neon()};
  return *by_level.in_force();
}

}  // namespace

void upsample_h2v1(const uint8_t* in, int count, uint8_t* out) { kernels().h2v1(in, count, out); }

void upsample_h2v2(const uint8_t* near, const uint8_t* far, int count, uint8_t* out) {
  kernels().h2v2(near, far, count, out);
}

void upsample_h1v2(const uint8_t* near, const uint8_t* far, bool lower, int count, uint8_t* out) {
  kernels().h1v2(near, far, lower ? 2 : 1, count, out);
}

void upsample_repeat(const uint8_t* in, int count, int times, uint8_t* out) {
  // Four at once, where three or two are wanted: the next sample overwrites the rest.
  for (int i = 0; i < count; ++i, out += times) {
    const uint32_t four = in[i] * 0x01010101u;
    std::memcpy(out, &four, sizeof(four));
  }
}

}  // namespace headrace
