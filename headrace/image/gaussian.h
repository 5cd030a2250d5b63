// SPDX-License-Identifier: Apache-2.0
// Weights of the Gaussian kernels with which torchvision blurs images and displacement fields.
#pragma once

#include <vector>

namespace headrace {

// How many taps on each side of the middle are significant, in a kernel of `size` taps: the others
// together are too small to change an 8-bit result.
int gaussian_reach(int size, double sigma);

// The weights of the significant taps. `size` is odd. Weights are normalized before the
// insignificant taps are left out.
std::vector<float> gaussian_taps(int size, double sigma);

}  // namespace headrace
