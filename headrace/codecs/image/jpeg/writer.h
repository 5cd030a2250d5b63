// SPDX-License-Identifier: Apache-2.0
// Encodes pixels as a baseline JPEG with libjpeg-turbo and its defaults, which are also those of
// Pillow and torchvision: 4:2:0, the standard Huffman tables, the accurate DCT.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/base/error.h"

namespace headrace {

struct PlanarBytes {
  const uint8_t* plane[3] = {};
  int channels = 3;  // 1 or 3
  int width = 0, height = 0;
};

// `quality`: 1 to 100. HR0389 for an image that exceeds JPEG's limits. Any thread may call it.
Result<std::vector<uint8_t>> jpeg_from_planes(const PlanarBytes& image, int quality);

}  // namespace headrace
