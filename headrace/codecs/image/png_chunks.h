// SPDX-License-Identifier: Apache-2.0
// What stands in a PNG file before its pixels and makes none: the EXIF orientation (chunk eXIf).
#pragma once

#include <cstdint>
#include <span>

namespace headrace {

// 1..8; 1 where there is no eXIf chunk before the first IDAT, or no valid orientation in it.
// Allocates nothing and trusts no length.
int png_orientation(std::span<const uint8_t> file);

}  // namespace headrace
