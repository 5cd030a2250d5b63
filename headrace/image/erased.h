// SPDX-License-Identifier: Apache-2.0
// A rectangle of a finished picture that is overwritten with one value per channel, or with noise.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "headrace/base/dtype.h"
#include "headrace/image/picture.h"

namespace headrace {

struct Erased {
  Window window;  // within the stored picture
  ChannelValues values{};
  // In place of `values`: the key of normal noise with mean 0 and standard deviation 1, one value
  // per position. The noise depends on the position, so the rectangle must not be moved afterwards.
  std::optional<uint64_t> noise = {};
};

// Overwrites the rectangle in a dense (C, H, W) or (H, W, C) picture.
void store_erased(const Erased& erased, int channels, int height, int width, DType dtype,
                  bool channels_last, void* picture);

}  // namespace headrace
