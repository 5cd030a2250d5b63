// SPDX-License-Identifier: Apache-2.0
// A decoded frame in the color format and sizes of its codec's planes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "headrace/codecs/video/video_track.h"

namespace headrace {

struct YuvFrame {
  int width = 0, height = 0;
  // Planes: luma alone, or luma, Cb and Cr (for kIdentity: green, blue, red); a row of a chroma
  // plane has (width + (1 << chroma_x)) - 1 >> chroma_x samples, and likewise columns.
  int planes = 3;
  int chroma_x = 1, chroma_y = 1;  // 4:2:0 has 1 and 1, 4:2:2 has 1 and 0, 4:4:4 has 0 and 0
  // Even and odd rows are two fields, of different times; the same holds for chroma rows.
  bool interlaced = false;
  int bits = 8;      // bits per sample; above 8, samples are uint16 in native byte order
  VideoColor color;  // from the stream, otherwise from the container
  std::array<const uint8_t*, 3> plane{};
  std::array<ptrdiff_t, 3> stride{};  // bytes between rows; reading up to 64 bytes past a row's end
                                      // is allowed (their values are unspecified)
};

}  // namespace headrace
