// SPDX-License-Identifier: Apache-2.0
// Which colours the components of a JPEG file stand for. No marker says so with certainty; readers
// guess from what writers have left behind, and this is libjpeg's guess. Any thread may call it.
#pragma once

#include <array>

#include "headrace/codecs/image/jpeg/headers/frame.h"

namespace headrace {

constexpr int kNoAdobeMarker = -1;

// As libjpeg's default_decompress_parms(). `ids` are the component identifiers of the frame header,
// `jfif` says that a JFIF APP0 segment stands before the first scan, `adobe_transform` is the
// transform byte of the Adobe APP14 segment there (the last one). REQUIRES: count is 1, 3 or 4.
JpegColor jpeg_color_of(int count, const std::array<int, 4>& ids, bool jfif, int adobe_transform);

}  // namespace headrace
