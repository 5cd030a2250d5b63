// SPDX-License-Identifier: Apache-2.0
#include "headrace/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <set>
#include <thread>

#include "headrace/base/text.h"
#include "headrace/loader/loader_test_numbers.h"

namespace headrace {
namespace {

TEST(Loader, DeliversEachRecordOnceInTheSamplersOrder) {
  auto source = std::make_shared<Numbers>(1000);
  Loader loader(source, {}, options(64));
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::set<int64_t> seen;
    int64_t number = 0;
    while (auto batch = loader.next()) {
      check_rows(*batch);
      const auto indices = loader.indices(epoch, number++);
      const auto labels = labels_of(*batch);
      ASSERT_EQ(indices.size(), labels.size());
      for (size_t i = 0; i < labels.size(); ++i) {
        ASSERT_EQ(labels[i], 3 * indices[i]);
        seen.insert(labels[i]);
      }
    }
    EXPECT_EQ(number, loader.batches_per_epoch());
    EXPECT_EQ(seen.size(), 1000u);
  }
}

TEST(Loader, OrderDoesNotDependOnThreadsOrReadStyle) {
  auto reference = [] {
    Loader loader(std::make_shared<Numbers>(500), {}, options(32, 1));
    return epoch_of(loader);
  }();
  for (ReadStyle style : {ReadStyle::kMemory, ReadStyle::kFiles, ReadStyle::kPython}) {
    for (int threads : {1, 2, 3, 5, 8}) {
      Loader loader(std::make_shared<Numbers>(500, std::set<int64_t>{}, style), {},
                    options(32, threads));
      EXPECT_EQ(epoch_of(loader), reference);
    }
  }
}

TEST(Loader, RanksTogetherGiveTheGlobalBatch) {
  auto source = std::make_shared<Numbers>(1000);
  Loader whole(source, {}, options(24));
  const auto expected = epoch_of(whole);
  for (int world : {2, 3, 4}) {
    std::vector<std::vector<int64_t>> joined(expected.size());
    for (int rank = 0; rank < world; ++rank) {
      LoaderOptions o = options(24 / world);
      o.rank = rank;
      o.world_size = world;
      Loader loader(source, {}, o);
      const auto mine = epoch_of(loader);
      ASSERT_EQ(mine.size(), expected.size());
      for (size_t i = 0; i < mine.size(); ++i)
        joined[i].insert(joined[i].end(), mine[i].begin(), mine[i].end());
    }
    EXPECT_EQ(joined, expected);
  }
}

TEST(Loader, ResumesAtEveryStepOnAnyNumberOfThreadsAndRanks) {
  auto source = std::make_shared<Numbers>(200, std::set<int64_t>{3, 50});
  LoaderOptions o = options(12);
  o.on_error = OnError::kSubstitute;
  Loader whole(source, {}, o);
  epoch_of(whole);  // resume in the second epoch
  const auto expected = epoch_of(whole);
  for (int64_t step = 0; step <= static_cast<int64_t>(expected.size()); ++step) {
    Loader first(source, {}, o);
    first.set_epoch(1);
    for (int64_t i = 0; i < step; ++i) ASSERT_TRUE(first.next());
    const LoaderState state = first.state();
    LoaderOptions other = o;
    other.threads = 1 + static_cast<int>(step % 4);
    other.world_size = step % 2 ? 2 : 1;
    other.batch_size = 12 / other.world_size;
    std::vector<std::vector<int64_t>> rest;
    for (int rank = 0; rank < other.world_size; ++rank) {
      other.rank = rank;
      Loader second(source, {}, other);
      second.load_state(state);
      const auto part = epoch_of(second);
      rest.resize(part.size());
      for (size_t i = 0; i < part.size(); ++i)
        rest[i].insert(rest[i].end(), part[i].begin(), part[i].end());
    }
    EXPECT_EQ(rest, (std::vector<std::vector<int64_t>>(expected.begin() + step, expected.end())));
  }
}

TEST(Loader, RejectsAStateOfAnotherRun) {
  Loader loader(std::make_shared<Numbers>(200), {}, options(10));
  LoaderState state = loader.state();
  Loader other_batch(std::make_shared<Numbers>(200), {}, options(20));
  EXPECT_THROW(other_batch.load_state(state), Exception);
  Loader other_records(std::make_shared<Numbers>(201), {}, options(10));
  EXPECT_THROW(other_records.load_state(state), Exception);
  LoaderState forged = state;
  forged.bad_records = -1000;
  EXPECT_THROW(loader.load_state(forged), Exception);
  forged = state;
  forged.batch = loader.batches_per_epoch() + 1;
  EXPECT_THROW(loader.load_state(forged), Exception);
}

TEST(Loader, StoppingEarlyStartsTheNextEpoch) {
  Loader loader(std::make_shared<Numbers>(100), {}, options(10));
  auto first = loader.next();
  loader.restart();
  EXPECT_EQ(loader.epoch(), 1);
  auto second = loader.next();
  EXPECT_EQ(second->epoch, 1);
  EXPECT_EQ(second->index, 0);
  loader.restart();
  loader.restart();  // no batch was taken in between
  EXPECT_EQ(loader.epoch(), 2);
}

TEST(Loader, ReplayGivesTheSameBatch) {
  Loader loader(std::make_shared<Numbers>(100), {}, options(16));
  std::vector<std::vector<int64_t>> batches = epoch_of(loader);
  for (size_t i = 0; i < batches.size(); ++i) {
    EXPECT_EQ(labels_of(loader.batch(0, static_cast<int64_t>(i))), batches[i]);
  }
  EXPECT_THROW(loader.batch(0, static_cast<int64_t>(batches.size())), Exception);
  EXPECT_EQ(loader.epoch(), 1);
}

TEST(Loader, AConsumerThatHoldsEveryBatchGetsCopies) {
  std::vector<std::string> warnings;
  LoaderOptions o = options(64);  // 512 KiB a batch
  o.warn = [&](const std::string& text) { warnings.push_back(text); };
  std::vector<Batch> kept;
  {
    Loader loader(std::make_shared<Numbers>(64 * 40), {}, o);
    while (auto batch = loader.next()) kept.push_back(std::move(*batch));
    EXPECT_EQ(kept.size(), 40u);
    EXPECT_GT(loader.stats().copies, 0);
  }
  EXPECT_EQ(warnings.size(), 1u);
  for (const Batch& batch : kept) check_rows(batch);  // even after the loader was destroyed
}

TEST(Loader, AConsumerThatHoldsTwoLargeBatchesGetsTheThird) {
  const int64_t rows = 2048;
  Loader loader(std::make_shared<Numbers>(rows * 6), {}, options(rows));
  std::deque<Batch> held;
  while (auto batch = loader.next()) {
    held.push_back(std::move(*batch));
    if (held.size() > 2) held.pop_front();
    for (const Batch& kept : held) check_rows(kept);
  }
}

TEST(Loader, HeldLabelsDoNotKeepASlot) {
  Loader loader(std::make_shared<Numbers>(64 * 40), {}, options(64));
  std::vector<BatchField> kept;
  while (auto batch = loader.next()) kept.push_back((*batch)["label"]);
  EXPECT_EQ(loader.stats().copies, 0);
  EXPECT_EQ(kept.size(), 40u);
}

TEST(Loader, PadFillsTheLastBatchAndMarksIt) {
  LoaderOptions o = options(8);
  o.shuffle = false;
  o.last_batch = LastBatch::kPad;
  o.plan.fields = {"label", "valid", "id", "key"};
  Loader loader(std::make_shared<Numbers>(10), {}, o);
  loader.next();
  auto last = loader.next();
  ASSERT_EQ(last->size, 8);
  const auto* valid = static_cast<const bool*>((*last)["valid"].view.data);
  const auto* id = static_cast<const int64_t*>((*last)["id"].view.data);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(valid[i], i < 2);
    EXPECT_EQ(id[i], (8 + i) % 10);
    EXPECT_EQ((*last)["key"].strings[i], "number " + std::to_string((8 + i) % 10));
  }
}

TEST(Loader, SeveralLoadersShareThePoolAndShutDownCleanly) {
  std::vector<std::thread> consumers;
  std::atomic<int64_t> total{0};
  for (int t = 0; t < 4; ++t) {
    consumers.emplace_back([&, t] {
      for (int round = 0; round < 5; ++round) {
        Loader loader(std::make_shared<Numbers>(100 + t), {}, options(16, 1 + t));
        const int stop_after = round % 2 ? 3 : 1000;
        for (int i = 0; i < stop_after; ++i) {
          auto batch = loader.next();
          if (!batch) break;
          total += batch->size;
        }
      }
    });
  }
  for (std::thread& consumer : consumers) consumer.join();
  EXPECT_GT(total, 0);
}

TEST(Loader, AnInterruptReachesTheWaitingConsumer) {
  struct Stopped {};
  class Stuck final : public Source {
   public:
    explicit Stuck(std::atomic<bool>& go) : go_(go) {
      schema_.push_back({.name = "label", .kind = FieldKind::kLabel, .dtype = DType::kInt64});
    }
    int64_t size() const override { return 10; }
    const Schema& schema() const override { return schema_; }
    ReadStyle read_style() const override { return ReadStyle::kFiles; }
    void read(std::span<const int64_t> indices, const std::vector<bool>&,
              std::span<RecordData> out) const override {
      while (!go_) std::this_thread::yield();
      for (size_t i = 0; i < indices.size(); ++i) out[i].fields.assign(1, {});
    }
    std::string key(int64_t) const override { return ""; }
    uint64_t fingerprint() const override { return 0; }
    std::string description() const override { return "stuck"; }

   private:
    std::atomic<bool>& go_;
    Schema schema_;
  };
  std::atomic<bool> go{false};
  Loader loader(std::make_shared<Stuck>(go), {}, options(2));
  EXPECT_THROW(loader.next([] { throw Stopped(); }), Stopped);
  go = true;
  EXPECT_TRUE(loader.next());  // and the loader continues
}

TEST(Loader, BatchSizesThatOverflowOverTheRanksAreRejected) {
  auto source = std::make_shared<Numbers>(10);
  for (const int64_t size : {int64_t{1} << 61, int64_t{1} << 62, int64_t{1} << 30}) {
    LoaderOptions large = options(size);
    large.world_size = 8;
    EXPECT_THROW(Loader(source, {}, large), Exception);
    large.batch_size = 0;
    large.global_batch_size = std::min(size, int64_t{1} << 59) * 8;
    EXPECT_THROW(Loader(source, {}, large), Exception);
  }
}

TEST(Loader, MisuseIsRejectedBeforeAnyThreadStarts) {
  auto source = std::make_shared<Numbers>(10);
  LoaderOptions both = options(2);
  both.global_batch_size = 4;
  EXPECT_THROW(Loader(source, {}, both), Exception);
  LoaderOptions skip = options(2);
  skip.on_error = OnError::kSkip;
  skip.world_size = 2;
  EXPECT_THROW(Loader(source, {}, skip), Exception);
  LoaderOptions small = options(1024);
  small.memory_limit = 1 << 20;
  EXPECT_THROW(Loader(source, {}, small), Exception);
  EXPECT_THROW(Loader(std::make_shared<Numbers>(0), {}, options(2)), Exception);
}

}  // namespace
}  // namespace headrace
