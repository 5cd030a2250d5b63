// SPDX-License-Identifier: Apache-2.0
// What a WebP file says beside its pixels: the RIFF container of the WebP specification.
#pragma once

#include <cstdint>
#include <span>

namespace headrace {

// The first frame of an animation, on its canvas.
struct WebpFrame {
  int x = 0, y = 0, width = 0, height = 0;
  std::span<const uint8_t> bytes;  // chunks ALPH and VP8, or VP8L; empty where there is none
};
WebpFrame first_webp_frame(std::span<const uint8_t> file);
// By EXIF, else by XMP: 1 where neither says it.
int webp_orientation(std::span<const uint8_t> file);

}  // namespace headrace
