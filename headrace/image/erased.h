// SPDX-License-Identifier: Apache-2.0
// A rectangle of a finished picture that is set to one value a channel.
#pragma once

#include <array>

#include "headrace/base/dtype.h"
#include "headrace/codecs/codec.h"

namespace headrace {

struct Erased {
  Window window;  // of the picture as it is stored; inside it
  std::array<double, 4> values{};
};

// Overwrites the rectangle in a dense (C, H, W) or (H, W, C) picture.
void store_erased(const Erased& erased, int channels, int height, int width, DType dtype,
                  bool channels_last, void* picture);

}  // namespace headrace
