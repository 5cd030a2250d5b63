// SPDX-License-Identifier: Apache-2.0
// Windows of random area and aspect ratio, distributed as torchvision's RandomResizedCrop draws
// them.
#pragma once

#include <array>

#include "headrace/base/random.h"
#include "headrace/image/recipe.h"

namespace headrace {

// Smallest and largest fraction of the area, and smallest and largest width / height.
struct RandomWindowParams {
  RandomWindowParams(std::array<double, 2> scale, std::array<double, 2> ratio);
  std::array<double, 2> scale, ratio, log_ratio;
};

// The area fraction is uniform, the ratio log-uniform, the position uniform. After ten draws that
// do not fit in the picture: the largest central window with an allowed ratio.
Window random_window(Size picture, const RandomWindowParams& params, Draws& draws);

}  // namespace headrace
