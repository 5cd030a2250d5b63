// SPDX-License-Identifier: Apache-2.0
// Interpolation filters, named as torchvision's InterpolationMode.
#pragma once

#include <cstdint>

namespace headrace {

enum class Filter : uint8_t { kNearest, kBilinear, kBicubic };

}  // namespace headrace
