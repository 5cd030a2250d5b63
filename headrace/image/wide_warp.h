// SPDX-License-Identifier: Apache-2.0
// The same as WarpPass for pictures that do not fit into a pixel word: samples of 16 bits or
// floats, or more than four channels. It uses torchvision's arithmetic on tensors; the nearest
// pixel is Pillow's, too.
#pragma once

#include "headrace/image/warp.h"

namespace headrace {

// Whether WarpPass cannot do it.
bool is_wide(const WarpedPicture& picture);
// A part of the outcome. REQUIRES: no collage; uint8, uint16 or float32; nearest or bilinear, as
// torch does it.
Picture warp_wide(const WarpedPicture& picture, const Window& part);

}  // namespace headrace
