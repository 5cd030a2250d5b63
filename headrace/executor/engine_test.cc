// SPDX-License-Identifier: Apache-2.0
// The loop over its parts. One record through it: OpenBatches::claim gives a worker of the pool the
// run with its row, RecordWorker::advance reads it (ReadAhead), makes and writes it (BatchBuilder),
// OpenBatches::note and finish take the report, await gives the batch to next().
#include "headrace/executor/engine.h"

#include <gtest/gtest.h>

#include <thread>

#include "headrace/executor/executor_test_ops.h"
#include "headrace/sources/columns/columns.h"
#include "headrace/storage/memory_files.h"

namespace headrace::scopes_test {
namespace {

constexpr int64_t kRecords = 50, kBatch = 16;

EngineOptions options_of(const SourcePtr& source, const Pipeline& pipeline,
                         OnError on_error = OnError::kRaise) {
  return {.task = {.source = source,
                   .plan = make_plan(source->schema(), pipeline, {}),
                   .sampler = shuffled(source->size()),
                   .layout = BatchLayout(source->size(), kBatch, 0, 1, LastBatch::kKeep),
                   .seed = 9,
                   .on_error = on_error},
          .threads = 3,
          .memory_limit = size_t{128} << 20,
          .warn = {}};
}

SourcePtr numbers(std::set<int64_t> bad = {}) {
  return std::make_shared<Numbers>(kRecords, std::move(bad));
}

std::vector<std::vector<int64_t>> rest_of(Engine& engine) {
  std::vector<std::vector<int64_t>> out;
  while (const std::optional<Batch> batch = engine.next({})) {
    check_rows(*batch);
    out.push_back(labels_of(*batch));
  }
  return out;
}

TEST(EngineTest, RestartsAnywhereAndABatchMadeAloneIsTheSame) {
  BadRecords bad(0, 0, {});
  Engine engine(options_of(numbers(), {}), bad);
  EXPECT_FALSE(engine.delivers());
  engine.start(1, 0);
  const auto whole = rest_of(engine);
  ASSERT_EQ(whole.size(), 4u);
  EXPECT_FALSE(engine.next({}));
  for (const int64_t batch : {2, 0, 3, 1, 1}) {
    engine.start(1, batch);
    EXPECT_EQ(labels_of(engine.make(1, 3)), whole[3]) << "also while a run is under way";
    if (batch == 0) {
      EXPECT_TRUE(engine.next({})) << "left in the middle";
      continue;
    }
    EXPECT_EQ(rest_of(engine),
              std::vector<std::vector<int64_t>>(whole.begin() + batch, whole.end()));
  }
  engine.stop();
  EXPECT_FALSE(engine.delivers());
  EXPECT_EQ(labels_of(engine.make(1, 0)), whole[0]) << "also after a stop";
}

TEST(EngineTest, CountsWhatItDelivers) {
  BadRecords bad(100, 1, {});
  Engine engine(options_of(numbers({7, 8}), steps({unchanged()}), OnError::kSkip), bad);
  engine.start(0, 0);
  int64_t records = 0;
  for (const auto& labels : rest_of(engine)) records += std::ssize(labels);
  EXPECT_EQ(records, kRecords - 2);
  const EngineStats stats = engine.stats();
  EXPECT_EQ(stats.batches, 4);
  EXPECT_EQ(stats.records, records);
  EXPECT_EQ(stats.copies, 0);
  EXPECT_GT(stats.stages.python, 0);
  EXPECT_LE(stats.memory_used, stats.memory_peak);
  EXPECT_EQ(bad.total(), 2);
}

TEST(EngineTest, AnErrorComesAfterTheBatchesBeforeItAndStartContinues) {
  std::set<int64_t> last;
  {
    BadRecords none(0, 0, {});
    Engine engine(options_of(numbers(), {}), none);
    last.insert(labels_of(engine.make(0, 3)).front() / 3);
  }
  BadRecords bad(0, 0, {});
  Engine engine(options_of(numbers(last), {}), bad);
  for (int i = 0; i < 2; ++i) {
    engine.start(0, 1);
    EXPECT_TRUE(engine.next({}));
    EXPECT_TRUE(engine.next({}));
    EXPECT_THROW((void)engine.next({}), Exception);
    EXPECT_FALSE(engine.delivers());
  }
}

TEST(EngineTest, AConsumerThatHoldsEveryBatchGetsCopiesAndAWarning) {
  std::vector<std::string> warnings;
  EngineOptions options = options_of(numbers(), {});
  options.warn = [&](const std::string& text) { warnings.push_back(text); };
  BadRecords bad(0, 0, {});
  Engine engine(std::move(options), bad);
  std::vector<Batch> kept;
  for (int epoch = 0; epoch < 5; ++epoch) {
    engine.start(epoch, 0);
    while (std::optional<Batch> batch = engine.next({})) kept.push_back(std::move(*batch));
  }
  EXPECT_EQ(kept.size(), 20u);
  for (const Batch& batch : kept) check_rows(batch);
  EXPECT_GT(engine.stats().copies, 0);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("are held by the consumer"), std::string::npos);
}

TEST(EngineTest, AStopInTheMiddleOfPythonStepsLeavesNothing) {
  BadRecords bad(0, 0, {});
  Engine engine(options_of(numbers(), steps({unchanged()})), bad);
  for (int i = 0; i < 20; ++i) {
    engine.start(i, 0);
    if (i % 2) {
      EXPECT_TRUE(engine.next({}));
    }
    engine.stop();
  }
  engine.start(1, 0);
  EXPECT_EQ(rest_of(engine).size(), 4u);
}

TEST(EngineTest, ANewIterationAndTheEndDoNotWaitForReadsThatStall) {
  for (const OnError on_error : {OnError::kRaise, OnError::kSubstitute}) {
    MemoryVolume volume("stalls");
    constexpr int64_t kBytes = 20'000;
    const std::vector<uint8_t> values(kBytes * kRecords, 7);
    Result<File> file = File::open(volume.write("array", values));
    ASSERT_TRUE(file);
    FileArray array{.parts = {}, .shape = {kBytes}};
    array.parts.push_back(
        {.file = std::make_shared<const File>(std::move(*file)), .count = kRecords});
    std::vector<Column> columns;
    columns.push_back({.name = "data", .values = std::move(array)});
    BadRecords bad(0, 0, {});
    Engine engine(options_of(records(std::move(columns)), {}, on_error), bad);
    const auto begin_and_stall = [&](int64_t epoch) {
      constexpr double kNever = 1e6;
      volume.behave(
          {.fault = [](const MemoryRequest&) { return MemoryFault{.extra_seconds = kNever}; }});
      const int64_t before = volume.requests();
      engine.start(epoch, 0);
      while (volume.requests() == before) std::this_thread::yield();
      volume.behave({});
    };
    for (const int64_t epoch : {10, 20}) {  // none continues another, which would read ahead
      begin_and_stall(epoch);
      engine.start(epoch + 5, 0);
      int batches = 0;
      while (engine.next({})) ++batches;
      EXPECT_EQ(batches, 4);
      EXPECT_EQ(bad.total(), 0);
    }
    begin_and_stall(30);
  }
}

}  // namespace
}  // namespace headrace::scopes_test
