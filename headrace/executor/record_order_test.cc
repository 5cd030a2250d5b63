// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/record_order.h"

#include <gtest/gtest.h>

#include <set>

#include "headrace/executor/executor_test_ops.h"

namespace headrace::scopes_test {
namespace record_order_test {

constexpr int64_t kRecords = 29, kBatch = 8;

RecordOrder order_of(const Pipeline& pipeline, uint64_t seed = 5,
                     LastBatch last = LastBatch::kKeep) {
  const auto source = std::make_shared<Numbers>(kRecords);
  return RecordOrder({.source = source,
                      .plan = make_plan(source->schema(), pipeline, {}),
                      .sampler = shuffled(kRecords),
                      .layout = BatchLayout(kRecords, kBatch, 1, 2, last),
                      .seed = seed});
}

TEST(RecordOrderTest, AnEpochHasEachRecordOnceAndPaddingStartsOver) {
  const RecordOrder order = order_of({}, 5, LastBatch::kPad);
  std::set<int64_t> seen;
  for (int64_t at = 0; at < kRecords; ++at) seen.insert(order.index_at(3, at));
  EXPECT_EQ(std::ssize(seen), kRecords);
  EXPECT_EQ(order.index_at(3, kRecords), order.index_at(3, 0));
  EXPECT_EQ(order.record_at(3, 4, 0), order.index_at(3, 4));
}

TEST(RecordOrderTest, SubstitutesDifferByAttemptPositionEpochAndSeed) {
  const RecordOrder order = order_of({}), other = order_of({}, 6);
  std::set<int64_t> by_attempt, by_position, by_epoch, by_seed;
  for (int i = 1; i <= 100; ++i) {
    by_attempt.insert(order.substitute_position(0, 0, i));
    by_position.insert(order.substitute_position(0, i, 1));
    by_epoch.insert(order.substitute_position(i, 0, 1));
    by_seed.insert(order_of({}, uint64_t(i)).substitute_position(0, 0, 1));
  }
  for (const auto& seen : {by_attempt, by_position, by_epoch, by_seed}) {
    EXPECT_GT(seen.size(), 20u) << "nearly all of the epoch's 29 positions";
    EXPECT_LT(*seen.rbegin(), kRecords);
  }
  EXPECT_EQ(order.record_at(2, 7, 3), order.index_at(2, order.substitute_position(2, 7, 3)));
}

TEST(RecordOrderTest, PartnersAreOtherRecordsAndSubstitutesHaveTheirOwn) {
  const RecordOrder order = order_of(steps({add_partners(3)}));
  EXPECT_EQ(order.partners(), 3);
  int differ = 0;
  for (int64_t position = 0; position < kRecords; ++position) {
    Record row, again;
    row.position = again.position = position;
    again.attempt = 1;
    order.place_partners(0, row);
    order.place_partners(0, again);
    std::set<int64_t> all{position}, of_substitute{order.substitute_position(0, position, 1)};
    for (int i = 0; i < 3; ++i) {
      all.insert(row.partners[size_t(i)].position);
      of_substitute.insert(again.partners[size_t(i)].position);
      differ += row.partners[size_t(i)].position != again.partners[size_t(i)].position;
      EXPECT_EQ(row.partners[size_t(i)].index, order.index_at(0, row.partners[size_t(i)].position));
    }
    EXPECT_EQ(all.size(), 4u) << position;
    EXPECT_EQ(of_substitute.size(), 4u) << position;
  }
  EXPECT_GT(differ, kRecords);
}

TEST(RecordOrderTest, ReadsAreTheRanksRowsWithTheirPartnersAndThenTheNextEpoch) {
  for (const int partners : {0, 2}) {
    const RecordOrder order = order_of(partners ? steps({add_partners(partners)}) : Pipeline{});
    const BatchLayout layout(kRecords, kBatch, 1, 2, LastBatch::kKeep);
    std::vector<int64_t> expected;
    for (const int64_t epoch : {4, 5}) {
      for (int64_t batch = epoch == 4 ? 2 : 0; batch < layout.batches(); ++batch) {
        const BatchRange range = layout.range(batch);
        for (int64_t at = range.begin; at < range.end; ++at) {
          expected.push_back(order.index_at(epoch, at));
          for (int i = 0; i < partners; ++i) {
            expected.push_back(order.index_at(epoch, order.partner_position(epoch, at, i, 0)));
          }
        }
      }
    }
    const ReadOrder reads = order.reads_from(4, 2, false);
    ASSERT_EQ(reads.count + reads.beyond, std::ssize(expected));
    for (int64_t i = 0; i < std::ssize(expected); ++i) {
      EXPECT_EQ(reads.index_of(i), expected[size_t(i)]) << i;
    }
  }
}

}  // namespace record_order_test
}  // namespace headrace::scopes_test
