// SPDX-License-Identifier: Apache-2.0
// The size of a HEIF file's primary picture when unpacked (ISO/IEC 23008-12), about which the
// container may lie: libheif trusts it, and allocates the size of the coded pictures.
// Bounds-checked; any thread may call it.
#pragma once

#include <cstdint>
#include <span>

namespace headrace {

struct HeifItems {
  // Pixels of the largest picture, grid or overlay among those of the primary one, its alpha
  // included.
  uint64_t most_pixels = 0;
  bool other_codings = false;  // one of them is AV1, whose size is not looked at
};
HeifItems look_at_heif_items(std::span<const uint8_t> file);

}  // namespace headrace
