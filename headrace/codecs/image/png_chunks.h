// SPDX-License-Identifier: Apache-2.0
// The EXIF orientation of a PNG file, from all of the places where Pillow looks.
#pragma once

#include <cstdint>
#include <span>

namespace headrace {

// Returns 1..8; 1 if there is no valid value. Sources: the chunk eXIf, or a text chunk named
// "exif"; otherwise the text chunk that ImageMagick writes, "Raw profile type exif"; and if EXIF
// has no orientation tag, XMP. They may come before or after the pixels. Does not trust lengths,
// and inflates at most a megabyte.
int png_orientation(std::span<const uint8_t> file);

}  // namespace headrace
