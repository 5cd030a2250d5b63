// SPDX-License-Identifier: Apache-2.0
// The properties of a JPEG file's marker segments that libjpeg does not report: the kind of frame
// and the EXIF orientation. Bounds-checked, allocates nothing; any thread may call it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace headrace {

struct JpegMarkers {
  int frame = 0;  // code of the first SOFn marker (0xC0..0xCF), 0 if there is none
  int exif_orientation = 1;
};

// Reads the segments up to the first scan. Stops at anything it cannot parse.
JpegMarkers read_jpeg_markers(std::span<const uint8_t> bytes);

// "lossless" for 0xC3 and so on: the name of an unsupported frame type, or empty.
std::string_view unsupported_frame_name(int marker);

}  // namespace headrace
