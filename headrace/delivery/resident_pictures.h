// SPDX-License-Identifier: Apache-2.0
// Pictures of a field that stay in memory and differ in size.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "headrace/image/picture.h"

namespace headrace {

struct ResidentPicture {
  const uint8_t* values = nullptr;  // (C, H, W) bytes on the host, as long as they stay there
  Size size;
};
// By record. shared: by the holder of a field, and by the steps on it.
using ResidentPictures = std::shared_ptr<const std::vector<ResidentPicture>>;

}  // namespace headrace
