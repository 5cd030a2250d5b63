// SPDX-License-Identifier: Apache-2.0
// Weights of the Gaussian kernels with which torchvision blurs images and displacement fields.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "headrace/base/random.h"

namespace headrace {

// At 5.8 sigma 255 times the weight is below 2^-16.
inline constexpr double kGaussianRadiusInSigmas = 5.8;

// How many taps on each side of the middle are significant, in a kernel of `size` taps: the others
// together are too small to change an 8-bit result.
inline int gaussian_radius(int size, double sigma) {
  return static_cast<int>(std::min<double>(size / 2, std::ceil(kGaussianRadiusInSigmas * sigma)));
}

// The weights of the significant taps. `size` is odd. Weights are normalized before the
// insignificant taps are left out.
inline std::vector<float> gaussian_taps(int size, double sigma) {
  const int half = size / 2;
  const int reach = gaussian_radius(size, sigma);
  double sum = 0;
  std::vector<double> weights;
  for (int at = -half; at <= half; ++at) {
    const double weight = portable_exp(std::max(-0.5 * at * at / (sigma * sigma), -600.0));
    sum += weight;
    if (std::abs(at) <= reach) weights.push_back(weight);
  }
  std::vector<float> out;
  for (const double weight : weights) out.push_back(static_cast<float>(weight / sum));
  return out;
}

}  // namespace headrace
