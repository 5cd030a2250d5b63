// SPDX-License-Identifier: Apache-2.0
// Draws from Beta and Dirichlet distributions, whose values do not depend on the C
// library.
//
// How many numbers they take from the stream differs from draw to draw, so a step must take its
// other numbers from the stream first.
#pragma once

#include <span>

#include "headrace/base/random.h"

namespace headrace {

// From the standard normal distribution.
double draw_normal(Draws& draws);
// 0 to 1, from Beta(alpha, alpha). REQUIRES: alpha > 0 and finite.
double draw_beta(Draws& draws, double alpha);
// Shares that sum to 1, from a Dirichlet distribution whose parameters are all `alpha`. REQUIRES:
// alpha > 0 and finite; at least one share.
void draw_dirichlet(Draws& draws, double alpha, std::span<double> shares);

}  // namespace headrace
