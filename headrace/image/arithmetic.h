// SPDX-License-Identifier: Apache-2.0
// torchvision computes tensors and Pillow pictures differently, with different results. An operator
// that supports both uses the one that the user chooses.
#pragma once

#include <cstdint>

namespace headrace {

enum class Arithmetic : uint8_t { kTorch, kPillow };

}  // namespace headrace
