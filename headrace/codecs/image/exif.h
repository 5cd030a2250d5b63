// SPDX-License-Identifier: Apache-2.0
// Orientation of pictures of several formats: in EXIF, else in XMP, as Pillow looks
// for it. Bounds-checked, allocates nothing; any thread may call it.
#pragma once

#include <cstdint>
#include <span>

namespace headrace {

// The value of IFD0's tag 0x0112 in a TIFF structure (EXIF 2.3, 4.6.4): 0 where absent, since XMP
// may have it then, and 1 where not 1..8.
int orientation_tag(std::span<const uint8_t> tiff);
// The same, of a chunk that may begin with the identifier of JPEG's APP1 segment, once or twice, as
// some writers have it.
int orientation_of_exif_chunk(std::span<const uint8_t> chunk);
// The value of tiff:Orientation in an XMP packet, an attribute or an element, by Pillow's pattern;
// 0 where absent, 1 where not 1..8.
int orientation_of_xmp(std::span<const uint8_t> packet);

}  // namespace headrace
