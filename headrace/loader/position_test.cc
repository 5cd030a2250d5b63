// SPDX-License-Identifier: Apache-2.0
#include "headrace/loader/position.h"

#include <gtest/gtest.h>

namespace headrace {
namespace position_test {

constexpr int64_t kRecords = 40, kRows = 10;

Position make_position() {
  return {/*seed=*/5, BatchLayout(kRecords, kRows, 0, 1, LastBatch::kKeep), 1, /*fingerprint=*/77};
}

Batch batch_of(int64_t epoch, int64_t index, int64_t size = kRows) {
  Batch batch;
  batch.epoch = epoch;
  batch.index = index;
  batch.size = size;
  return batch;
}

TEST(PositionTest, CountsReceivedButNotReturnedBatches) {
  Position position = make_position();
  position.begin_epoch(3);
  position.remember();
  position.receive(batch_of(3, 0), /*bad_records=*/1);
  EXPECT_EQ(position.state().batch, 1);
  EXPECT_EQ(position.state().bad_records, 1);
  position.remember();
  position.receive(batch_of(3, 1), 4);
  position.take_back();
  EXPECT_EQ(position.place().batch, 1);
  EXPECT_EQ(position.place().bad_records, 1);
  EXPECT_EQ(position.state().epoch, 3);
}

TEST(PositionTest, AnEpochWithOnlyBadRecordsReceivesNoBatch) {
  Position position = make_position();
  position.receive(batch_of(0, 0, /*size=*/0), kRows);
  EXPECT_FALSE(position.place().received);
  position.receive(batch_of(0, 1), kRows);
  EXPECT_TRUE(position.place().received);
  position.begin_epoch(1);
  EXPECT_FALSE(position.place().received);
}

TEST(PositionTest, AStateRestoresThePosition) {
  Position first = make_position(), second = make_position();
  first.begin_epoch(2);
  first.receive(batch_of(2, 2), 6);
  LoaderState state = first.state();
  state.seed = 9;
  second.check(state);
  second.load(state);
  EXPECT_EQ(second.place().epoch, 2);
  EXPECT_EQ(second.place().batch, 3);
  EXPECT_EQ(second.place().bad_records, 6);
  EXPECT_EQ(second.seed(), 9);
}

TEST(PositionTest, AStateOfAnotherRunIsRejected) {
  const Position position = make_position();
  const auto refused = [&](auto change) {
    LoaderState state = position.state();
    change(state);
    try {
      position.check(state);
    } catch (const Exception& exception) {
      return std::string(exception.error().code->id) == "HR0711";
    }
    return false;
  };
  EXPECT_FALSE(refused([](LoaderState&) {}));
  EXPECT_TRUE(refused([](LoaderState& state) { state.global_batch = 11; }));
  EXPECT_TRUE(refused([](LoaderState& state) { state.records = 41; }));
  EXPECT_TRUE(refused([](LoaderState& state) { state.fingerprint = 78; }));
  EXPECT_TRUE(refused([](LoaderState& state) { state.streams = 64; }));
  EXPECT_TRUE(refused([](LoaderState& state) { state.batch = 5; }));
  EXPECT_TRUE(refused([](LoaderState& state) { state.epoch = -1; }));
  EXPECT_TRUE(refused([](LoaderState& state) { state.bad_records = -1; }));
}

// A device refuses the third batch; it and the one made after it are delivered again.
TEST(PositionTest, RemadeBatchesAreCountedOnce) {
  Position position = make_position();
  const auto made = [](int64_t batches, int64_t repaired) {
    return DeliveredCounts{batches, batches * kRows, 0, {.repaired = repaired}};
  };
  position.begin_iteration(made(8, 100));  // of epochs before
  position.receive(batch_of(0, 0), 0);
  position.receive(batch_of(0, 1), 0);
  const LoaderMark mark = position.mark(made(10, 103));
  position.receive(batch_of(0, 2), 0);
  position.load(mark.state);
  position.go_back(mark, made(12, 110));
  EXPECT_EQ(position.place().batch, 2);
  EXPECT_EQ(position.delivered(made(12, 110)).batches, 10);
  position.begin_iteration(made(12, 110));
  EXPECT_EQ(position.delivered(made(14, 117)).records, 12 * kRows);
  EXPECT_EQ(position.take_repaired(made(14, 117)), 10) << "3 before and 7 after the mark";
  EXPECT_EQ(position.take_repaired(made(14, 117)), 0) << "told once";
  position.begin_epoch(1);
  position.begin_iteration(made(14, 117));
  EXPECT_EQ(position.take_repaired(made(18, 118)), 1);
}

}  // namespace position_test
}  // namespace headrace
