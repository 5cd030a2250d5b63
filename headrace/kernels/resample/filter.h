// SPDX-License-Identifier: Apache-2.0
// Interpolation filters, named like torchvision's InterpolationMode, with Pillow's weights.
#pragma once

#include <cstdint>

namespace headrace {

enum class Filter : uint8_t {
  kNearest,
  kBilinear,
  kBicubic,
  kBox,
  kHamming,
  kLanczos,
  // antialias=False, as torch resizes tensors. Its "nearest" and "nearest-exact":
  kNearestTorch,
  kNearestExactTorch,
  // Interpolates between two or four neighbors, however much the picture shrinks
  // (aliased_weights.h).
  kBilinearAliased,
  kBicubicAliased,
};
constexpr bool is_aliased(Filter filter) { return filter >= Filter::kBilinearAliased; }
// Outputs are copies of inputs.
constexpr bool is_nearest(Filter filter) {
  return filter == Filter::kNearest || filter == Filter::kNearestTorch ||
         filter == Filter::kNearestExactTorch;
}

}  // namespace headrace
