// SPDX-License-Identifier: Apache-2.0
// The orientation of an image, in any of several formats, from EXIF or else from XMP, like Pillow.
// Bounds-checked, allocates nothing; any thread may call it.
#pragma once

#include <cstdint>
#include <span>

namespace headrace {

// The value of IFD0's tag 0x0112 in a TIFF structure (EXIF 2.3, 4.6.4): 0 if absent, because XMP
// may have it then; 1 if the value is not 1..8.
int orientation_tag(std::span<const uint8_t> tiff);
// The same for a chunk that may begin with the identifier of JPEG's APP1 segment, which some
// writers write once or twice.
int orientation_of_exif_chunk(std::span<const uint8_t> chunk);
// The value of tiff:Orientation in an XMP packet, an attribute or an element, by Pillow's pattern;
// 0 if absent, 1 if the value is not 1..8.
int orientation_of_xmp(std::span<const uint8_t> packet);

}  // namespace headrace
