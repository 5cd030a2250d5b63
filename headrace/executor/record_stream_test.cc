// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/record_stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <numeric>
#include <set>

namespace headrace {
namespace {

// Records whose bytes spell their index; number 13 is bad.
class Numbered final : public Source {
 public:
  explicit Numbered(int64_t records) : records_(records) {}
  int64_t size() const override { return records_; }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override { return ReadStyle::kFiles; }
  void read(std::span<const int64_t> indices, const std::vector<bool>&,
            std::span<RecordData> out) const override {
    reads_ += static_cast<int64_t>(indices.size());
    for (size_t i = 0; i < indices.size(); ++i) {
      out[i].index = indices[i];
      out[i].owned.resize(1);
      out[i].owned[0].resize(sizeof(int64_t));
      std::memcpy(out[i].owned[0].data(), &indices[i], sizeof(int64_t));
      out[i].result = {};
      if (indices[i] == 13) out[i].result = Error{.what = "thirteen"};
    }
  }
  std::string key(int64_t index) const override { return std::to_string(index); }
  uint64_t fingerprint() const override { return 1; }
  std::string description() const override { return "numbered"; }
  mutable std::atomic<int64_t> reads_{0};

 private:
  int64_t records_;
  Schema schema_{{.name = "data", .kind = FieldKind::kBytes}};
};

std::vector<int64_t> shuffled(int64_t count) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) order[static_cast<size_t>(i)] = i * 7 % count;
  return order;
}

std::vector<int64_t> rest_of(RecordStream& stream) {
  std::vector<int64_t> values;
  for (int64_t number = 0;; ++number) {
    const std::shared_ptr<StoredBatch> batch = stream.next();
    if (!batch) return values;
    EXPECT_EQ(batch->number, number);
    for (const RecordData& record : batch->records) {
      int64_t value = -1;
      std::memcpy(&value, record.owned[0].data(), sizeof value);
      values.push_back(value);
    }
  }
}

TEST(RecordStream, GivesAllRecordsInOrderWhateverTheThreads) {
  for (const int threads : {1, 2, 5}) {
    for (const int64_t batch_size : {1, 3, 64, 5000}) {
      RecordStream stream(std::make_shared<Numbered>(1000), shuffled(1000), batch_size, threads,
                          2 * threads);
      for (int epoch = 0; epoch < 2; ++epoch) {
        stream.start();
        EXPECT_EQ(rest_of(stream), shuffled(1000));
        EXPECT_EQ(stream.next(), nullptr);
      }
    }
  }
}

TEST(RecordStream, BeginsAnewInTheMiddleOfAnEpoch) {
  RecordStream stream(std::make_shared<Numbered>(1000), shuffled(1000), 10, 3, 6);
  EXPECT_EQ(stream.next(), nullptr);  // it has not been started
  for (int epoch = 0; epoch < 50; ++epoch) {
    stream.start();
    for (int i = 0; i < epoch; ++i) ASSERT_NE(stream.next(), nullptr);
  }
  stream.start();
  EXPECT_EQ(rest_of(stream), shuffled(1000));
}

TEST(RecordStream, ReadsNoFurtherAheadThanItsDepth) {
  const auto source = std::make_shared<Numbered>(1000);
  RecordStream stream(source, shuffled(1000), 10, 4, 3);
  stream.start();
  for (int taken = 1; taken <= 20; ++taken) {
    ASSERT_NE(stream.next(), nullptr);
    EXPECT_LE(source->reads_, 10 * (taken + 3));
  }
}

TEST(RecordStream, LeavesABatchAloneForAsLongAsItIsHeld) {
  std::vector<std::shared_ptr<StoredBatch>> held;
  {
    RecordStream stream(std::make_shared<Numbered>(200), shuffled(200), 10, 2, 4);
    for (int epoch = 0; epoch < 3; ++epoch) {
      stream.start();
      while (std::shared_ptr<StoredBatch> batch = stream.next()) held.push_back(std::move(batch));
    }
  }
  std::set<const uint8_t*> memory;
  for (size_t i = 0; i < held.size(); ++i) {
    for (size_t row = 0; row < 10; ++row) {
      const RecordData& record = held[i]->records[row];
      EXPECT_EQ(record.index, shuffled(200)[i % 20 * 10 + row]);
      memory.insert(record.owned[0].data());
    }
  }
  EXPECT_EQ(memory.size(), 600u);
}

TEST(RecordStream, KeepsTheResultOfEachRecord) {
  RecordStream stream(std::make_shared<Numbered>(20), shuffled(20), 20, 1, 1);
  stream.start();
  const std::shared_ptr<StoredBatch> batch = stream.next();
  ASSERT_NE(batch, nullptr);
  for (const RecordData& record : batch->records) {
    EXPECT_EQ(static_cast<bool>(record.result), record.index != 13);
  }
}

}  // namespace
}  // namespace headrace
