// SPDX-License-Identifier: Apache-2.0
// A rectangle of a finished picture that is set to one value per channel, or to noise.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "headrace/base/dtype.h"
#include "headrace/image/picture.h"

namespace headrace {

struct Erased {
  Window window;  // of the picture as it is stored; inside it
  ChannelValues values{};
  // Instead: normal noise of mean 0 and deviation 1, one value per position. It belongs to this
  // rectangle of this picture, and nothing moves it.
  std::optional<uint64_t> noise = {};
};

// Overwrites the rectangle in a dense (C, H, W) or (H, W, C) picture.
void store_erased(const Erased& erased, int channels, int height, int width, DType dtype,
                  bool channels_last, void* picture);

}  // namespace headrace
