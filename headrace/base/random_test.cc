// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>

namespace headrace {
namespace {

// Beta(a, a) has the mean 1/2 and the variance 1 / (4 (2 a + 1)).
TEST(Beta, HasItsMomentsForSmallAndLargeAlphas) {
  for (double alpha : {1e-6, 0.01, 0.2, 0.8, 1.0, 3.0, 400.0, 1e6}) {
    constexpr int kDraws = 40000;
    Draws draws(1, 2, 3, hash_name("beta"));
    double sum = 0, squares = 0;
    for (int i = 0; i < kDraws; ++i) {
      const double share = draw_beta(draws, alpha);
      ASSERT_TRUE(share >= 0 && share <= 1) << alpha;
      sum += share;
      squares += (share - 0.5) * (share - 0.5);
    }
    const double variance = 1 / (4 * (2 * alpha + 1));
    EXPECT_NEAR(sum / kDraws, 0.5, 5 * std::sqrt(variance / kDraws)) << alpha;
    EXPECT_NEAR(squares / kDraws / variance, 1, 0.05) << alpha;
  }
}

TEST(Dirichlet, SharesSumToOneAndAreEquallyDistributed) {
  std::array<double, 3> shares, sums{};
  Draws draws(4, 5, 6, hash_name("dirichlet"));
  constexpr int kDraws = 30000;
  for (int i = 0; i < kDraws; ++i) {
    draw_dirichlet(draws, 1.0, shares);
    EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 1, 1e-12);
    for (size_t s = 0; s < shares.size(); ++s) sums[s] += shares[s];
  }
  for (double sum : sums) EXPECT_NEAR(sum / kDraws, 1.0 / 3, 0.01);
}

}  // namespace
}  // namespace headrace
