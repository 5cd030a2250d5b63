// SPDX-License-Identifier: Apache-2.0
// A Gaussian blur of given width, as applied by GaussianBlur to an image.
#pragma once

#include "headrace/image/pending_picture.h"

namespace headrace {

// REQUIRES: half the kernel is smaller than the image's sides.
PendingPass gaussian_blur_pass(Size kernel, double sigma);

}  // namespace headrace
