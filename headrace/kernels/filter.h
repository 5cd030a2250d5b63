// SPDX-License-Identifier: Apache-2.0
// Interpolation filters, named as torchvision's InterpolationMode; what weighs as Pillow does.
#pragma once

#include <cstdint>

namespace headrace {

enum class Filter : uint8_t { kNearest, kBilinear, kBicubic, kBox, kHamming, kLanczos };

}  // namespace headrace
