// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/reading/read_ahead.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <set>
#include <thread>

namespace headrace {
namespace read_ahead_test {

// Records whose bytes spell their index; remembers what was read. `pause` stands for a slow disk.
class Numbered final : public Source {
 public:
  Numbered(int64_t records, ReadStyle style, std::chrono::microseconds pause)
      : records_(records),
        style_(style),
        pause_(pause),
        schema_{{.name = "data", .kind = FieldKind::kBytes}} {}
  int64_t size() const override { return records_; }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override { return style_; }
  void read(std::span<const int64_t> indices, const std::vector<bool>&,
            std::span<RecordData> out) const override {
    calls_ += 1;
    for (size_t i = 0; i < indices.size(); ++i) {
      std::this_thread::sleep_for(pause_);
      out[i].index = indices[i];
      out[i].owned.resize(1);
      out[i].owned[0].resize(1000);
      std::memcpy(out[i].owned[0].data(), &indices[i], 8);
      reads_ += 1;
    }
  }
  std::string key(int64_t index) const override { return std::to_string(index); }
  uint64_t fingerprint() const override { return 1; }
  std::string description() const override { return "numbered"; }
  mutable std::atomic<int> reads_{0}, calls_{0};

 private:
  int64_t records_;
  ReadStyle style_;
  std::chrono::microseconds pause_;
  Schema schema_;
};

// Fetches 0..count-1 from several threads, as workers claim them, and checks what comes.
void fetch_all(ReadAhead& ahead, int64_t count, int threads) {
  std::atomic<int64_t> next{0};
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&] {
      RecordData data;
      for (int64_t sequence; (sequence = next++) < count;) {
        const int64_t index = (sequence * 7) % count;
        const size_t lent = ahead.fetch(sequence, index, data, /*may_wait=*/true);
        int64_t got = -1;
        std::memcpy(&got, data.owned[0].data(), 8);
        ahead.give_back(lent);
        ASSERT_EQ(got, index);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
}

class EveryStyle : public testing::TestWithParam<std::tuple<ReadStyle, int, int>> {};

TEST_P(EveryStyle, DeliversEachRecordOnceAndTheRightOne) {
  const auto [style, pause, threads] = GetParam();
  auto source = std::make_shared<Numbered>(500, style, std::chrono::microseconds(pause));
  ReadAhead ahead(source, {true}, 1 << 20);
  for (int round = 0; round < 3; ++round) {
    ahead.start({[](int64_t sequence) { return (sequence * 7) % 500; }, 500});
    fetch_all(ahead, 500, threads);
    ahead.stop();
    EXPECT_EQ(source->reads_, 500 * (round + 1));
    EXPECT_EQ(ahead.held_bytes(), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(ReadAhead, EveryStyle,
                         testing::Combine(testing::Values(ReadStyle::kMemory, ReadStyle::kFiles,
                                                          ReadStyle::kPython),
                                          testing::Values(0, 400), testing::Values(1, 4)));

TEST_P(EveryStyle, SkippedRecordsHoldNoMemoryAndAreNotWaitedFor) {
  const auto [style, pause, threads] = GetParam();
  auto source = std::make_shared<Numbered>(300, style, std::chrono::microseconds(pause));
  ReadAhead ahead(source, {true}, 64 << 10);
  ahead.start({[](int64_t sequence) { return sequence; }, 300});
  RecordData data;
  for (int64_t begin = 0; begin < 300; begin += 10) {  // the last 6 of 10, also the stream's last
    ahead.skip(begin + 4, 6);
    for (int64_t sequence = begin; sequence < begin + 4; ++sequence) {
      const size_t lent = ahead.fetch(sequence, sequence, data, /*may_wait=*/true);
      int64_t got = -1;
      std::memcpy(&got, data.owned[0].data(), 8);
      EXPECT_EQ(got, sequence);
      ahead.give_back(lent);
    }
  }
  ahead.stop();
  EXPECT_EQ(ahead.held_bytes(), 0u);
}

TEST(ReadAhead, PythonIsCalledForManyRecordsAtOnce) {
  auto source = std::make_shared<Numbered>(512, ReadStyle::kPython, std::chrono::microseconds(0));
  ReadAhead ahead(source, {true}, 1 << 20);
  ahead.start({[](int64_t sequence) { return (sequence * 7) % 512; }, 512});
  fetch_all(ahead, 512, 2);
  EXPECT_LE(source->calls_, 512 / 8);
}

TEST(ReadAhead, StaysWithinItsShareOfMemory) {
  auto source = std::make_shared<Numbered>(1000, ReadStyle::kPython, std::chrono::microseconds(0));
  ReadAhead ahead(source, {true}, 64 << 10);
  ahead.start({[](int64_t sequence) { return sequence; }, 1000});
  RecordData data;
  for (int64_t sequence = 0; sequence < 1000; ++sequence) {
    const size_t lent = ahead.fetch(sequence, sequence, data);
    EXPECT_LE(ahead.held_bytes(), size_t{64 << 10});
    ahead.give_back(lent);
  }
}

TEST(ReadAhead, WaitsForMemoryUntilLentRecordsAreReturned) {
  auto source = std::make_shared<Numbered>(100, ReadStyle::kFiles, std::chrono::microseconds(0));
  ReadAhead ahead(source, {true}, 2500);  // two records
  ahead.start({[](int64_t sequence) { return sequence; }, 100});
  RecordData first, second, third;
  const size_t lent = ahead.fetch(0, 0, first);
  EXPECT_FALSE(ahead.is_full());
  const size_t also_lent = ahead.fetch(1, 1, second);
  EXPECT_TRUE(ahead.is_full());
  std::atomic<bool> fetched{false};
  std::thread other([&] {
    ahead.give_back(ahead.fetch(2, 2, third, /*may_wait=*/true));
    fetched = true;
  });
  EXPECT_EQ(source->reads_, 2);
  EXPECT_FALSE(fetched);
  ahead.give_back(lent);
  other.join();
  ahead.give_back(also_lent);
  EXPECT_EQ(source->reads_, 3);
}

// A source whose large records break a cap with an error of the data, as masks of COCO do.
class Capped final : public Source {
 public:
  int64_t size() const override { return 400; }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override { return ReadStyle::kFiles; }
  void read(std::span<const int64_t> indices, const std::vector<bool>&,
            std::span<RecordData> out) const override {
    static const ErrorCode kTooMany{"HR0995", ErrorKind::kData, "planted", "for tests"};
    for (size_t i = 0; i < indices.size(); ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(300));  // a slow disk: readers start
      const size_t bytes = indices[i] % 9 == 8 ? 30'000 : 1000;
      out[i].index = indices[i];
      out[i].result = {};
      out[i].owned.resize(1);
      if (bytes > out[i].max_bytes) {
        out[i].result = Error{.code = &kTooMany, .what = "more than memory is meant for"};
      } else {
        out[i].owned[0].resize(bytes);
      }
    }
  }
  std::string key(int64_t index) const override { return std::to_string(index); }
  uint64_t fingerprint() const override { return 1; }
  std::string description() const override { return "capped"; }

 private:
  Schema schema_{{.name = "data", .kind = FieldKind::kBytes}};
};

TEST(ReadAhead, ARecordLargerThanTheReadAheadIsNotBad) {
  ReadAhead ahead(std::make_shared<Capped>(), {true}, size_t{1} << 20);
  ahead.start({[](int64_t sequence) { return sequence; }, 400});
  RecordData data;
  for (int64_t sequence = 0; sequence < 400; ++sequence) {
    ahead.give_back(ahead.fetch(sequence, sequence, data, /*may_wait=*/true));
    EXPECT_TRUE(data.result) << sequence;
  }
  ahead.stop();
  EXPECT_EQ(ahead.held_bytes(), 0u);
}

// A worker that waits for Python's reader may hold what fills the share.
TEST(ReadAhead, ARecordThatAWorkerWaitsForMayExceedTheShare) {
  auto source = std::make_shared<Numbered>(100, ReadStyle::kPython, std::chrono::microseconds(0));
  ReadAhead ahead(source, {true}, 2500);
  ahead.start({[](int64_t sequence) { return sequence; }, 100});
  std::vector<RecordData> data(100);
  for (int64_t sequence = 0; sequence < 100; ++sequence) {
    ahead.fetch(sequence, sequence, data[sequence]);  // nothing is given back
  }
  EXPECT_EQ(source->reads_, 100);
}

// Whose record 5 is a giant.
class Large final : public Source {
 public:
  static constexpr size_t kBytes = size_t{2} << 20;
  int64_t size() const override { return 100; }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override { return ReadStyle::kFiles; }
  void read(std::span<const int64_t> indices, const std::vector<bool>&,
            std::span<RecordData> out) const override {
    out[0].owned.resize(1);
    if (out[0].owned[0].capacity() == 0) ++fresh_;
    out[0].owned[0].resize(indices[0] == 5 ? 8 * kBytes : kBytes);
  }
  std::string key(int64_t index) const override { return std::to_string(index); }
  uint64_t fingerprint() const override { return 1; }
  std::string description() const override { return "large"; }
  mutable int fresh_ = 0;

 private:
  const Schema schema_{{.name = "data", .kind = FieldKind::kBytes}};
};

TEST(ReadAhead, ReusesTheMemoryOfLargeRecordsButNotOfHugeOnes) {
  const auto source = std::make_shared<Large>();
  ReadAhead ahead(source, {true}, size_t{256} << 20);
  ahead.start({.index_of = [](int64_t sequence) { return sequence; }, .count = 100});
  RecordData data;
  for (int64_t i = 0; i < 100; ++i) {
    const size_t lent = ahead.fetch(i, i, data);
    ASSERT_EQ(data.owned[0].size(), i == 5 ? 8 * Large::kBytes : Large::kBytes);
    ahead.give_back(lent);
    ahead.take_back(data);
    EXPECT_TRUE(data.owned.empty());
    EXPECT_LE(ahead.held_bytes(), Large::kBytes);
  }
  EXPECT_EQ(source->fresh_, 2);  // the first, and the one behind the giant
  ahead.stop();
  EXPECT_EQ(ahead.held_bytes(), 0u);
}

TEST(ReadAhead, StopsInTheMiddle) {
  auto source =
      std::make_shared<Numbered>(100000, ReadStyle::kPython, std::chrono::microseconds(1));
  ReadAhead ahead(source, {true}, 1 << 20);
  ahead.start({[](int64_t sequence) { return sequence; }, 100000});
  RecordData data;
  ahead.fetch(0, 0, data);
  ahead.stop();
  EXPECT_LT(source->reads_, 100000);
}

}  // namespace read_ahead_test
}  // namespace headrace
