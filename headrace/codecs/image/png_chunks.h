// SPDX-License-Identifier: Apache-2.0
// Metadata of a PNG file: the EXIF orientation, in each place where Pillow looks.
#pragma once

#include <cstdint>
#include <span>

namespace headrace {

// 1..8; 1 where nothing says a valid one: the chunk eXIf, or a text named "exif"; else the text
// that ImageMagick writes, "Raw profile type exif"; and where Exif has no such tag, XMP. They may
// come before or after the pixels. Trusts no length, and inflates a megabyte at most.
int png_orientation(std::span<const uint8_t> file);

}  // namespace headrace
