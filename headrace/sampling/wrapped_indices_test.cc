// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "headrace/sampling/sampler.h"

namespace headrace {
namespace {

TEST(WrappedIndices, WrapAroundAsOftenAsNeeded) {
  const SamplerPtr sampler = shuffled(5);
  std::vector<int64_t> expected, found(13);
  for (int64_t position = 3; position < 3 + 13; ++position) {
    expected.push_back(sampler->index(7, 2, position % 5));
  }
  wrapped_indices(*sampler, 7, 2, 3, 5, found);
  EXPECT_EQ(found, expected);
  wrapped_indices(*sampler, 7, 2, 3, 5, {});
}

}  // namespace
}  // namespace headrace
