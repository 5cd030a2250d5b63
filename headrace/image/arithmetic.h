// SPDX-License-Identifier: Apache-2.0
// torchvision computes tensors and Pillow's pictures in two ways, whose results differ. An operator
// that has both takes the one that the user names.
#pragma once

#include <cstdint>

namespace headrace {

enum class Arithmetic : uint8_t { kTorch, kPillow };

}  // namespace headrace
