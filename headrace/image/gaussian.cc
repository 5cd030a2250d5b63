// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/gaussian.h"

#include <algorithm>
#include <cmath>

#include "headrace/base/random.h"

namespace headrace {
namespace {

// At 5.8 sigma 255 times the weight is below 2^-16.
constexpr double kReach = 5.8;

}  // namespace

int gaussian_reach(int size, double sigma) {
  return static_cast<int>(std::min<double>(size / 2, std::ceil(kReach * sigma)));
}

std::vector<float> gaussian_taps(int size, double sigma) {
  const int half = size / 2;
  const int reach = gaussian_reach(size, sigma);
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
