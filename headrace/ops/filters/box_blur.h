// SPDX-License-Identifier: Apache-2.0
// Pillow's ImageFilter.GaussianBlur: three box blurs along each axis, whose widths are no whole
// numbers.
#pragma once

#include "headrace/image/picture.h"

namespace headrace {

// Of 8 bits. REQUIRES: radius > 0 and finite.
Picture blurred_as_pillow(const Picture& picture, double radius);

}  // namespace headrace
