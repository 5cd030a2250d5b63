// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/headers/frame.h"

#include <algorithm>

namespace headrace {
namespace {

int divided_up(int value, int by) { return (value + by - 1) / by; }

}  // namespace

bool lay_out(JpegFrame& frame) {
  if (frame.width < 1 || frame.width > 65535 || frame.height < 1 || frame.height > 65535) {
    return false;
  }
  if (frame.count < 1 || frame.count > 4) return false;
  frame.h_max = frame.v_max = 1;
  for (int c = 0; c < frame.count; ++c) {
    JpegComponent& component = frame.component[c];
    if (frame.count == 1) component.h = component.v = 1;
    if (component.h < 1 || component.h > 4 || component.v < 1 || component.v > 4) return false;
    frame.h_max = std::max(frame.h_max, component.h);
    frame.v_max = std::max(frame.v_max, component.v);
  }
  frame.mcus_wide = divided_up(frame.width, 8 * frame.h_max);
  frame.mcus_high = divided_up(frame.height, 8 * frame.v_max);
  for (int c = 0; c < frame.count; ++c) {
    JpegComponent& component = frame.component[c];
    if (frame.h_max % component.h || frame.v_max % component.v) return false;
    component.width = divided_up(frame.width * component.h, frame.h_max);
    component.height = divided_up(frame.height * component.v, frame.v_max);
    component.blocks_wide = divided_up(component.width, 8);
    component.blocks_high = divided_up(component.height, 8);
  }
  return true;
}

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
