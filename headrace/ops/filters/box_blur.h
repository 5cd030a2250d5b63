// SPDX-License-Identifier: Apache-2.0
// Pillow's ImageFilter.GaussianBlur: three box blurs along each axis, whose widths need not be
// integers.
#pragma once

#include "headrace/image/picture.h"

namespace headrace {

// For 8-bit samples. REQUIRES: `out` has the same shape; 0 < radius < 1e5.
void blur_as_pillow(const Picture& in, double radius, Picture& out);

}  // namespace headrace
