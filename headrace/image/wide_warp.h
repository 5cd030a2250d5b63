// SPDX-License-Identifier: Apache-2.0
// Does the same as WarpPass for pictures whose pixels do not fit into a 32-bit word: 16-bit or
// float32 samples, or more than four channels. Uses torchvision's arithmetic on tensors; for the
// nearest pixel, Pillow's arithmetic is also supported.
#pragma once

#include "headrace/image/warp.h"

namespace headrace {

// Whether WarpPass does not support the picture.
bool is_wide(const WarpedPicture& picture);
// Computes a part of the result. REQUIRES: not a collage; uint8, uint16 or float32; nearest, or
// torch's bilinear.
Picture warp_wide(const WarpedPicture& picture, const Window& part);

}  // namespace headrace
