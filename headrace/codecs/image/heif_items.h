// SPDX-License-Identifier: Apache-2.0
// The decoded size of a HEIF file's primary picture (ISO/IEC 23008-12), which the container may
// misstate: libheif trusts the container, but allocates memory for the coded pictures.
// Bounds-checked; any thread may call it.
#pragma once

#include <cstdint>
#include <span>

namespace headrace {

struct HeifItems {
  // Pixels of the largest picture, grid or overlay that the primary one refers to, including its
  // alpha.
  uint64_t max_pixels = 0;
  bool has_av1 = false;  // one of them is AV1, whose size is not parsed
};
HeifItems inspect_heif_items(std::span<const uint8_t> file);

}  // namespace headrace
