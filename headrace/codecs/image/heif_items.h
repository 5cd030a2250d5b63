// SPDX-License-Identifier: Apache-2.0
// What the primary picture of a HEIF file unpacks to (ISO/IEC 23008-12), about which the container
// need not tell the truth: libheif believes it, and allocates what the coded pictures say.
// Bounds-checked; any thread may call it.
#pragma once

#include <cstdint>
#include <span>

namespace headrace {

struct HeifItems {
  // Of the largest picture, grid or overlay among those that the primary one is made of, its alpha
  // included.
  uint64_t most_pixels = 0;
  bool other_codings = false;  // one of them is AV1, whose size is not looked at
};
HeifItems look_at_heif_items(std::span<const uint8_t> file);

}  // namespace headrace
