// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>

#include "headrace/sampling/order_test_promises.h"

namespace headrace {
namespace {

SamplerPtr curriculum_of(std::vector<int64_t> difficulties, int64_t draws) {
  const SamplerRecord& record = *Registry<SamplerRecord>::find("curriculum");
  const Arguments arguments("curriculum", record.params,
                            {{"start", 0.25}, {"epochs", int64_t{3}}, {"num_samples", draws}});
  const auto records = std::ssize(difficulties);
  return record.make({.records = records, .integers = std::move(difficulties)}, arguments);
}

// Of eight records, the easiest 2, 4, 6 and finally all are drawn.
TEST(Curriculum, EachEpochDrawsFromMoreOfTheEasiest) {
  const SamplerPtr order = curriculum_of({70, 10, 60, 20, 50, 30, 40, 0}, 8);
  const std::set<int64_t> easy[] = {{7, 1}, {7, 1, 3, 5}, {7, 1, 3, 5, 6, 4}};
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    const std::vector<int64_t> drawn = records_of_epoch(*order, 4, epoch);
    ASSERT_EQ(drawn.size(), 8u);
    EXPECT_EQ(std::set<int64_t>(drawn.begin(), drawn.end()), easy[epoch]);
  }
  for (const uint64_t epoch : {3, 4, 100}) {
    const std::vector<int64_t> drawn = records_of_epoch(*order, 4, epoch);
    EXPECT_EQ(std::set<int64_t>(drawn.begin(), drawn.end()).size(), 8u);
  }
}

TEST(Curriculum, DrawsAllAvailableRecordsBeforeAnyRepeats) {
  const SamplerPtr order = curriculum_of({3, 1, 2, 0, 4, 5, 6, 7}, 6);
  const std::vector<int64_t> drawn = records_of_epoch(*order, 4, 0);  // three times two
  for (size_t i = 0; i < 6; i += 2) {
    EXPECT_EQ((std::set<int64_t>{drawn[i], drawn[i + 1]}), (std::set<int64_t>{1, 3}));
  }
}

TEST(Curriculum, HasAtLeastOneRecord) {
  const SamplerPtr order = curriculum_of({5}, 2);
  EXPECT_EQ(records_of_epoch(*order, 0, 0), (std::vector<int64_t>{0, 0}));
}

}  // namespace
}  // namespace headrace
