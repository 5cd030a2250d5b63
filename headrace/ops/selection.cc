// SPDX-License-Identifier: Apache-2.0
#include "headrace/ops/selection.h"

#include <algorithm>
#include <numeric>

namespace headrace {

std::vector<int> Selection::draw(Draws draws) const {
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
