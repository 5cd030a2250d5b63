// SPDX-License-Identifier: Apache-2.0
// Draws from normal, Beta and Dirichlet distributions; the values do not depend on the C library.
//
// The number of values that they consume from the stream varies, so an operator must make its other
// draws first.
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
