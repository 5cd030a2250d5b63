// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/headers/color_space.h"

namespace headrace {

JpegColor jpeg_color_of(int count, const std::array<int, 4>& ids, bool jfif, int adobe_transform) {
  if (count == 1) return JpegColor::kGray;
  if (count == 4) {
    const bool plain = adobe_transform == kNoAdobeMarker || adobe_transform == 0;
    return plain ? JpegColor::kCMYK : JpegColor::kYCCK;
  }
  if (jfif) return JpegColor::kYCbCr;
  if (adobe_transform != kNoAdobeMarker) {
    return adobe_transform == 0 ? JpegColor::kRGB : JpegColor::kYCbCr;
  }
  return ids[0] == 'R' && ids[1] == 'G' && ids[2] == 'B' ? JpegColor::kRGB : JpegColor::kYCbCr;
}

}  // namespace headrace
