// SPDX-License-Identifier: Apache-2.0
#include "headrace/sampling/batch_layout.h"

#include <gtest/gtest.h>

#include "headrace/base/error.h"

namespace headrace {
namespace {

TEST(BatchLayout, SlicesOfAllRanksAreTheBatchAndEndWhereGroupsEnd) {
  for (int64_t group : {1, 2, 4, 8}) {
    for (int64_t positions : {64, 100, 103, 121}) {
      for (int world : {1, 2, 4}) {
        for (LastBatch last : {LastBatch::kKeep, LastBatch::kDrop, LastBatch::kPad}) {
          const int64_t left = positions % 32,
                        batches = BatchLayout(positions, 32, 0, 1, last, group).batches();
          if (last == LastBatch::kKeep && left > 0 && (left + group - 1) / group < world) continue;
          for (int64_t batch = 0; batch < batches; ++batch) {
            int64_t at = batch * 32;
            for (int rank = 0; rank < world; ++rank) {
              const BatchLayout layout(positions, 32, rank, world, last, group);
              const BatchRange range = layout.range(batch);
              EXPECT_EQ(range.begin, at);
              EXPECT_EQ(range.begin % group, 0);
              EXPECT_GT(range.size(), 0);
              EXPECT_LE(range.size(), layout.rank_batch());
              for (int64_t row = 0; row < range.size(); ++row) {
                EXPECT_EQ(layout.position_of_row(layout.rows_before(batch) + row),
                          range.begin + row);
              }
              at = range.end;
            }
            const bool short_one = last == LastBatch::kKeep && batch + 1 == batches && left > 0;
            EXPECT_EQ(at, short_one ? positions : (batch + 1) * 32);
          }
        }
      }
    }
  }
}

TEST(BatchLayout, RefusesABatchThatCutsGroups) {
  EXPECT_THROW(BatchLayout(100, 30, 0, 1, LastBatch::kKeep, 4), Exception);
  EXPECT_THROW(BatchLayout(100, 24, 0, 4, LastBatch::kKeep, 4), Exception);
  EXPECT_NO_THROW(BatchLayout(100, 24, 0, 2, LastBatch::kDrop, 4));
}

}  // namespace
}  // namespace headrace
