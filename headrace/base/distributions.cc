// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/distributions.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace headrace {

// Marsaglia's polar method.
double draw_normal(Draws& draws) {
  while (true) {
    const double x = draws.uniform(-1, 1), y = draws.uniform(-1, 1);
    const double square = x * x + y * y;
    if (square > 0 && square < 1) return x * std::sqrt(-2 * portable_log(square) / square);
  }
}

namespace {

// (0, 1], which has a logarithm.
double above_zero(Draws& draws) { return 1 - draws.uniform(); }

// The logarithm of a draw from Gamma(alpha, 1): small alphas give draws below the range of a
// double. Marsaglia and Tsang, A Simple Method for Generating Gamma Variables, 2000.
double draw_log_gamma(Draws& draws, double alpha) {
  if (alpha < 1) {
    const double boost = portable_log(above_zero(draws)) / alpha;
    return draw_log_gamma(draws, alpha + 1) + boost;
  }
  const double d = alpha - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = draw_normal(draws), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root, log_v = 3 * portable_log(root);
    if (portable_log(above_zero(draws)) < 0.5 * x * x + d - d * v + d * log_v) {
      return portable_log(d) + log_v;
    }
  }
}

}  // namespace

void draw_dirichlet(Draws& draws, double alpha, std::span<double> shares) {
  for (double& share : shares) share = draw_log_gamma(draws, alpha);
  const double most = *std::ranges::max_element(shares);
  double sum = 0;
  for (double& share : shares) {
    share = share - most < -700 ? 0 : portable_exp(share - most);
    sum += share;
  }
  for (double& share : shares) share /= sum;
}

double draw_beta(Draws& draws, double alpha) {
  std::array<double, 2> shares;
  draw_dirichlet(draws, alpha, shares);
  return shares[0];
}

}  // namespace headrace
