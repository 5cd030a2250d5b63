// SPDX-License-Identifier: Apache-2.0
// The lists of transforms that a record takes, and their order: the draws of RandomChoice,
// RandomOrder, OneOf and SomeOf.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "headrace/base/random.h"

namespace headrace {

struct Selection {
  std::vector<double> weights;  // one per list, not negative, with a positive sum
  int count = 1;                // distinct lists to take, drawn one after another by weight
  bool shuffled = false;        // in the order drawn; otherwise in list order

  // The indices of the lists, in execution order. One random number per draw.
  std::vector<int> draw(Draws draws) const;
};

inline std::vector<int> Selection::draw(Draws draws) const {
  std::vector<double> left = weights;
  std::vector<int> taken;
  for (int i = 0; i < count; ++i) {
    const double u = draws.uniform() * std::accumulate(left.begin(), left.end(), 0.0);
    int at = -1;
    double below = 0;
    for (int each = 0; each < static_cast<int>(left.size()); ++each) {
      if (left[size_t(each)] <= 0) continue;  // zero weight, or already drawn
      at = each;
      below += left[size_t(each)];
      if (u < below) break;
    }
    if (at < 0) break;  // all remaining weights are zero
    taken.push_back(at);
    left[size_t(at)] = 0;
  }
  if (!shuffled) std::ranges::sort(taken);
  return taken;
}

}  // namespace headrace
