// SPDX-License-Identifier: Apache-2.0
// The lists of transforms that a record takes, and their order: the draws of RandomChoice,
// RandomOrder, OneOf and SomeOf.
#pragma once

#include <vector>

#include "headrace/base/random.h"

namespace headrace {

struct Selection {
  std::vector<double> weights;  // of each list, not negative, with a positive sum
  int count = 1;                // of different lists that are taken, by one weight after the other
  bool shuffled = false;        // they come as they are drawn, else in their own order

  // The numbers of the lists, in the order in which they are done. One draw for each.
  std::vector<int> draw(Draws draws) const;
};

}  // namespace headrace
