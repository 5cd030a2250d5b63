// SPDX-License-Identifier: Apache-2.0
// Metadata of a PNG file: the EXIF orientation, in each place where Pillow looks.
#pragma once

#include <cstdint>
#include <span>

namespace headrace {

// 1..8; 1 if there is no valid value. Sources: the chunk eXIf, or a text named "exif"; otherwise
// the text that ImageMagick writes, "Raw profile type exif"; and if Exif has no such tag, XMP. They
// may come before or after the pixels. Does not trust lengths, and inflates at most a megabyte.
int png_orientation(std::span<const uint8_t> file);

}  // namespace headrace
