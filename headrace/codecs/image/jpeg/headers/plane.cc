// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/headers/plane.h"

#include <algorithm>

namespace headrace {
namespace {

// libjpeg does not filter components up to 2 columns wide horizontally; h1v2 is filtered at any
// size.
Upsampling upsampling_of(int h_ratio, int v_ratio, int width) {
  const bool filters_aside = h_ratio == 2 && width > 2;
  if (h_ratio == 1 && v_ratio == 1) return Upsampling::kNone;
  if (filters_aside && v_ratio == 1) return Upsampling::kH2V1;
  if (h_ratio == 1 && v_ratio == 2) return Upsampling::kH1V2;
  if (filters_aside && v_ratio == 2) return Upsampling::kH2V2;
  return Upsampling::kRepeat;
}

}  // namespace

JpegPlane jpeg_plane(const JpegFrame& frame, const JpegComponent& component, const Window& window) {
  JpegPlane plane;
  plane.h_ratio = frame.h_max / component.h;
  plane.v_ratio = frame.v_max / component.v;
  plane.rows = 8 * component.v;
  plane.width = component.width;
  plane.height = component.height;
  plane.upsampling = upsampling_of(plane.h_ratio, plane.v_ratio, plane.width);

  const int right = window.x + window.width - 1, bottom = window.y + window.height - 1;
  plane.left = window.x / plane.h_ratio;
  plane.right = right / plane.h_ratio;
  if (plane.reads_horizontal_neighbors()) {  // each of a sample's two outputs reads the neighbor on
                                             // its side
    if (window.x % 2 == 0) plane.left = std::max(0, plane.left - 1);
    if (right % 2 == 1) plane.right = std::min(plane.width - 1, plane.right + 1);
  }
  plane.top = window.y / plane.v_ratio;
  plane.bottom = bottom / plane.v_ratio;
  if (plane.reads_vertical_neighbors()) {
    if (window.y % 2 == 0) plane.top = std::max(0, plane.top - 1);
    if (bottom % 2 == 1) plane.bottom = std::min(plane.height - 1, plane.bottom + 1);
  }
  return plane;
}

}  // namespace headrace
