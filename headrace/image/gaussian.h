// SPDX-License-Identifier: Apache-2.0
// Weights of a Gaussian kernel, as used by torchvision to blur pictures and displacement fields.
#pragma once

#include <vector>

namespace headrace {

// How many of this many taps on each side of the middle are significant: the sum of the others
// changes no byte.
int gaussian_reach(int size, double sigma);

// Weights of the taps that count, of an odd number; they add up to 1 with those left out.
std::vector<float> gaussian_taps(int size, double sigma);

}  // namespace headrace
