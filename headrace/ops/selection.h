// SPDX-License-Identifier: Apache-2.0
// The lists of transforms that a record takes, and their order: the draws of RandomChoice,
// RandomOrder, OneOf and SomeOf.
#pragma once

#include <vector>

#include "headrace/base/random.h"

namespace headrace {

struct Selection {
  std::vector<double> weights;  // one per list, not negative, with a positive sum
  int count = 1;                // distinct lists to take, drawn one after the other by weight
  bool shuffled = false;        // in the order drawn; otherwise in list order

  // The indices of the lists, in execution order. One random number per draw.
  std::vector<int> draw(Draws draws) const;
};

}  // namespace headrace
