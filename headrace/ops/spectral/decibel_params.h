// SPDX-License-Identifier: Apache-2.0
// Parameters of conversions to decibels, with torchaudio's floor.
#pragma once

#include <cstdint>
#include <optional>

#include "headrace/kernels/audio/frame_kernels.h"

namespace headrace {

// `top`: the floor, relative to the overall maximum.
inline void to_decibels(const float* in, int64_t count, float multiplier, std::optional<float> top,
                        float* out) {
  const FrameKernels& kernels = frame_kernels();
  kernels.decibels(in, count, {.multiplier = multiplier, .least = 1e-10f}, out);
  if (top) kernels.raise(out, count, kernels.largest(out, count) - *top, 0, 1, out);
}

}  // namespace headrace
