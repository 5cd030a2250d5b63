// SPDX-License-Identifier: Apache-2.0
// Two samples of a dtype mixed as torch mixes tensors of it: x.roll(1, 0).mul_(rest).add_(
// x.mul(own)), each operation rounded to the dtype; bytes in float32, rounded to the nearest. One
// arithmetic for the host's loops and for kernels.
#pragma once

#include <cstdint>

#include "headrace/base/host_device_function.h"
#include "headrace/kernels/half.h"

namespace headrace {

// `Form` says what a stored number is to float arithmetic.
template <class Form>
struct MixedFloats {
  using Stored = typename Form::Stored;
  HEADRACE_HD static Stored mix(Stored partner, Stored own_sample, float own, float rest) {
    const float theirs = rounded(Form::load(partner) * rest);
    return Form::store(theirs + rounded(Form::load(own_sample) * own));
  }

 private:
  HEADRACE_HD static float rounded(float value) { return Form::load(Form::store(value)); }
};

struct Float32Form {
  using Stored = float;
  HEADRACE_HD static float load(float value) { return value; }
  HEADRACE_HD static float store(float value) { return value; }
};
struct Float16Form {
  using Stored = uint16_t;
  HEADRACE_HD static float load(uint16_t value) { return float32_from_float16(value); }
  HEADRACE_HD static uint16_t store(float value) { return float16_from_float32(value); }
};
struct BFloat16Form {
  using Stored = uint16_t;
  HEADRACE_HD static float load(uint16_t value) { return float32_from_bfloat16(value); }
  HEADRACE_HD static uint16_t store(float value) { return bfloat16_from_float32(value); }
};

using MixedFloat32 = MixedFloats<Float32Form>;
using MixedFloat16 = MixedFloats<Float16Form>;
using MixedBFloat16 = MixedFloats<BFloat16Form>;

struct MixedBytes {
  using Stored = uint8_t;
  HEADRACE_HD static uint8_t mix(uint8_t partner, uint8_t own_sample, float own, float rest) {
    // never below 0 nor above 255
    const float mixed = static_cast<float>(partner) * rest + static_cast<float>(own_sample) * own;
    return static_cast<uint8_t>(mixed + 0.5f);
  }
};

}  // namespace headrace
