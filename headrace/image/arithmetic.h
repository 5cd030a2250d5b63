// SPDX-License-Identifier: Apache-2.0
// torchvision's results for tensors and for Pillow images differ. An operator that supports both
// uses the arithmetic that the user chooses.
#pragma once

#include <cstdint>

namespace headrace {

enum class Arithmetic : uint8_t { kTorch, kPillow };

}  // namespace headrace
