// SPDX-License-Identifier: Apache-2.0
// A Gaussian blur of given width, as GaussianBlur does it to an image.
#pragma once

#include "headrace/image/pending_picture.h"

namespace headrace {

// REQUIRES of the image: half the kernel is less than its sides.
PendingPass gaussian_blur_pass(Size kernel, double sigma);

}  // namespace headrace
