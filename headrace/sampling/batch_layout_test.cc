// SPDX-License-Identifier: Apache-2.0
#include "headrace/sampling/batch_layout.h"

#include <gtest/gtest.h>

#include <algorithm>

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

// A billion records over a changing number of ranks, about a thousand: computed by slices, not by
// records.
TEST(BatchLayout, UnevenSlicesAreConsecutiveAndTheirWeightsAverageToOne) {
  constexpr int64_t kPositions = 1'000'000'007;
  for (const int64_t global_batch : {1'000, 4'096, 4'097}) {
    for (const int world : {1, 7, 999, 1'000}) {
      for (const int64_t batch : {int64_t{0}, int64_t{77'777}, kPositions / global_batch - 1}) {
        int64_t at = batch * global_batch;
        double weights = 0;
        for (int rank = 0; rank < world; ++rank) {
          const BatchLayout layout(kPositions, global_batch, rank, world, LastBatch::kDrop, 1,
                                   Uneven::kYes);
          const BatchRange range = layout.range(batch);
          EXPECT_EQ(range.begin, at);
          EXPECT_TRUE(range.size() == layout.rank_batch() || range.size() == global_batch / world);
          const int64_t row = layout.rows_before(batch);
          EXPECT_EQ(layout.position_of_row(row), range.begin);
          EXPECT_EQ(layout.position_of_row(row + range.size() - 1), range.end - 1);
          weights += layout.weight(batch);
          at = range.end;
        }
        EXPECT_EQ(at, (batch + 1) * global_batch);
        EXPECT_NEAR(weights, world, 1e-6);
      }
    }
  }
  EXPECT_THROW(BatchLayout(100, 10, 0, 3, LastBatch::kDrop), Exception);
  EXPECT_THROW(BatchLayout(100, 10, 0, 11, LastBatch::kDrop, 1, Uneven::kYes), Exception);
  EXPECT_THROW(BatchLayout(100, 12, 0, 5, LastBatch::kDrop, 2, Uneven::kYes), Exception);
}

// Every rank has the same number of rows; the valid ones are the same as in uneven slices.
TEST(BatchLayout, PaddedSlicesHaveEqualSizesAndTheirValidRowsAreTheBatch) {
  for (const int64_t positions : {60, 57, 51}) {
    for (const int world : {1, 3, 4, 7, 10}) {
      for (const LastBatch last : {LastBatch::kKeep, LastBatch::kDrop, LastBatch::kPad}) {
        const int64_t left = positions % 10;
        if (last == LastBatch::kKeep && left > 0 && left < world) continue;
        const auto layout = [&](int rank, Uneven uneven) {
          return BatchLayout(positions, 10, rank, world, last, 1, uneven);
        };
        for (int64_t batch = 0; batch < layout(0, Uneven::kPad).batches(); ++batch) {
          const bool is_short = last == LastBatch::kKeep && positions - batch * 10 < 10;
          const int64_t rows = ((is_short ? left : 10) + world - 1) / world;
          double weights = 0;
          for (int rank = 0; rank < world; ++rank) {
            const BatchLayout padded = layout(rank, Uneven::kPad);
            const BatchLayout uneven = layout(rank, Uneven::kYes);
            const BatchRange range = padded.range(batch), records = uneven.range(batch);
            EXPECT_EQ(range.size(), rows);
            EXPECT_EQ(range.begin, records.begin);
            EXPECT_EQ(range.valid_end, std::max(std::min(records.end, positions), range.begin));
            EXPECT_EQ(records.valid_end, range.valid_end);
            EXPECT_EQ(padded.weight(batch), uneven.weight(batch));
            for (int64_t row = 0; row < rows; ++row) {
              EXPECT_EQ(padded.position_of_row(padded.rows_before(batch) + row), range.begin + row);
            }
            weights += padded.weight(batch);
          }
          EXPECT_NEAR(weights, world, 1e-9);
        }
      }
    }
  }
}

// The end of such an epoch is never reached, so it may have any remainder.
TEST(BatchLayout, AnEndlessEpochHasAnyNumberOfRanks) {
  for (const int64_t group : {1, 2}) {
    for (const int world : {1, 2, 3, 5, 7, 8, 1000}) {
      const int64_t global_batch = 3 * group * world;
      for (int rank = 0; rank < std::min(world, 8); ++rank) {
        const BatchLayout layout(kEndless, global_batch, rank, world, LastBatch::kKeep, group);
        for (const int64_t batch : {int64_t{0}, int64_t{1} << 30, kEndless / global_batch - 1}) {
          const BatchRange range = layout.range(batch);
          EXPECT_EQ(range.begin, batch * global_batch + rank * 3 * group);
          EXPECT_EQ(range.size(), 3 * group);
        }
      }
    }
  }
  EXPECT_THROW(BatchLayout(kEndless - 1, 10, 0, 10, LastBatch::kKeep), Exception);
}

TEST(BatchLayout, RejectsABatchThatSplitsGroups) {
  EXPECT_THROW(BatchLayout(100, 30, 0, 1, LastBatch::kKeep, 4), Exception);
  EXPECT_THROW(BatchLayout(100, 24, 0, 4, LastBatch::kKeep, 4), Exception);
  EXPECT_NO_THROW(BatchLayout(100, 24, 0, 2, LastBatch::kDrop, 4));
}

}  // namespace
}  // namespace headrace
