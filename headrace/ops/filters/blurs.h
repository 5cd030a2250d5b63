// SPDX-License-Identifier: Apache-2.0
// Blurs that several operators use.
#pragma once

#include "headrace/image/pending_picture.h"
#include "headrace/image/picture.h"

namespace headrace {

// Pillow's ImageFilter.GaussianBlur: three box blurs along each axis, whose widths need not be
// integers. For 8-bit samples. REQUIRES: `out` has the same shape; 0 < radius < 1e5.
void blur_as_pillow(const Picture& in, double radius, Picture& out);

// A Gaussian blur of given width, as applied by GaussianBlur to an image. REQUIRES: half the kernel
// is smaller than the image's sides.
PendingPass gaussian_blur_pass(Size kernel, double sigma);

}  // namespace headrace
