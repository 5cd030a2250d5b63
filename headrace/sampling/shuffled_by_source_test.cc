// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "headrace/sampling/sampler.h"
#include "headrace/sources/columns/columns.h"
#include "headrace/sources/combined/combined.h"

namespace headrace {
namespace {

using Indices = std::vector<int64_t>;

SourcePtr numbered(int64_t size, int64_t first) {
  auto values = std::make_shared<Indices>(size);
  std::iota(values->begin(), values->end(), first);
  return records({{"value", ArrayColumn{values->data(), DType::kInt64, size, {}, values}}});
}

Indices order_of(const Sampler& sampler, uint64_t epoch) {
  Indices out(sampler.size());
  sampler.indices(/*seed=*/7, epoch, 0, out);
  return out;
}

TEST(ShuffledBySource, IsTheDefaultShuffleIfTheSourceDoesNotDefineOne) {
  const SourcePtr plain = numbered(50, 0);
  EXPECT_EQ(order_of(*shuffled_by(plain), 3), order_of(*shuffled(50), 3));
  EXPECT_EQ(shuffled_by(plain)->fingerprint(), shuffled(50)->fingerprint());
}

TEST(ShuffledBySource, GivesEachRecordOnceInAnOrderOfTheEpoch) {
  const auto sampler = shuffled_by(mix({numbered(31, 0), numbered(700, 1000)}, {1, 2}));
  EXPECT_FALSE(sampler->in_order());
  EXPECT_EQ(order_of(*sampler, 1), order_of(*sampler, 1));
  EXPECT_NE(order_of(*sampler, 1), order_of(*sampler, 2));
  Indices all = order_of(*sampler, 1), expected(all.size());
  std::iota(expected.begin(), expected.end(), 0);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, expected);
}

TEST(ShuffledBySource, PreservesTheSourceOfEachPositionOfAMix) {
  const SourcePtr mixed = mix({numbered(31, 0), numbered(700, 1000), numbered(9, 5000)}, {2, 5, 1});
  const Indices values = mixed->integer_column("value");
  const Indices order = order_of(*shuffled_by(mixed), 4);
  for (size_t i = 0; i < order.size(); ++i) {
    ASSERT_EQ(values[order[i]] / 1000, values[i] / 1000) << "place " << i;
  }
}

TEST(ShuffledBySource, HasTheFingerprintOfItsSource) {
  const auto of = [](double weight) {
    return shuffled_by(mix({numbered(31, 0), numbered(70, 100)}, {1, weight}))->fingerprint();
  };
  EXPECT_EQ(of(2), of(2));
  EXPECT_NE(of(2), of(3));
}

}  // namespace
}  // namespace headrace
