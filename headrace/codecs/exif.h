// SPDX-License-Identifier: Apache-2.0
// What pictures of several formats carry as EXIF. Bounds-checked, allocates nothing; any thread may
// call it.
#pragma once

#include <cstdint>
#include <span>

namespace headrace {

// The value of IFD0's tag 0x0112 in a TIFF structure (EXIF 2.3, 4.6.4), 1 where absent or not 1..8.
int orientation_of_tiff(std::span<const uint8_t> tiff);

}  // namespace headrace
