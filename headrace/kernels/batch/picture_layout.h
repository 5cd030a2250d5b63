// SPDX-License-Identifier: Apache-2.0
// Positions of the samples in a batch of pictures.
#pragma once

#include <cstdint>

namespace headrace {

// Distances in elements between neighbors along each axis.
struct PictureStrides {
  int64_t picture = 0, row = 0, column = 0, channel = 0;

  // Dense (N, C, H, W).
  static PictureStrides channels_first(int64_t channels, int64_t height, int64_t width) {
    return {channels * height * width, width, 1, height * width};
  }
  // Dense (N, H, W, C).
  static PictureStrides channels_last(int64_t channels, int64_t height, int64_t width) {
    return {channels * height * width, channels * width, channels, 1};
  }
};

}  // namespace headrace
