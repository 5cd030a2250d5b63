// SPDX-License-Identifier: Apache-2.0
// Weights of a Gaussian kernel, as torchvision blurs pictures and fields with it.
#pragma once

#include <vector>

namespace headrace {

// How many taps on each side of the middle count, of so many: what those beyond add up to changes
// no byte.
int gaussian_reach(int size, double sigma);

// Weights of the taps that count, of an odd number; they add up to 1 with those left out.
std::vector<float> gaussian_taps(int size, double sigma);

}  // namespace headrace
