// SPDX-License-Identifier: Apache-2.0
#include "headrace/loader/position.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

constexpr int64_t kRecords = 40, kRows = 10;

ConsumerPosition make_position() {
  return {/*seed=*/5, BatchLayout(kRecords, kRows, 0, 1, LastBatch::kKeep), 1, /*fingerprint=*/77};
}

Batch batch_of(int64_t epoch, int64_t index, int64_t size = kRows) {
  Batch batch;
  batch.epoch = epoch;
  batch.index = index;
  batch.size = size;
  return batch;
}

TEST(ConsumerPositionTest, CountsWhatWasReceivedAndWhatWasTakenBackNot) {
  ConsumerPosition position = make_position();
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

TEST(ConsumerPositionTest, AnEpochWithoutAGoodRecordHasReceivedNothing) {
  ConsumerPosition position = make_position();
  position.receive(batch_of(0, 0, /*size=*/0), kRows);
  EXPECT_FALSE(position.place().received);
  position.receive(batch_of(0, 1), kRows);
  EXPECT_TRUE(position.place().received);
  position.begin_epoch(1);
  EXPECT_FALSE(position.place().received);
}

TEST(ConsumerPositionTest, AStateLeadsAnotherToTheSamePlace) {
  ConsumerPosition first = make_position(), second = make_position();
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

TEST(ConsumerPositionTest, AStateOfSomethingElseIsRefused) {
  const ConsumerPosition position = make_position();
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
  EXPECT_TRUE(refused([](LoaderState& state) { state.batch = 5; }));
  EXPECT_TRUE(refused([](LoaderState& state) { state.epoch = -1; }));
  EXPECT_TRUE(refused([](LoaderState& state) { state.bad_records = -1; }));
}

}  // namespace
}  // namespace headrace
