// SPDX-License-Identifier: Apache-2.0
// Runs that wait at a Python step, simulated by one thread that plays worker, Python and consumer.
#include "headrace/executor/python_step_runner.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "headrace/executor/executor_test_ops.h"

namespace headrace::scopes_test {
namespace python_step_runner_test {

constexpr int64_t kRecords = 24, kBatch = 8;
constexpr size_t kMiB = size_t{1} << 20;

// Notes how many records each call has.
class Counted final : public PythonFunction {
 public:
  explicit Counted(bool throws) : throws_(throws) {}
  std::string name() const override { return "counted"; }
  std::vector<std::string> inputs() const override { return {"value"}; }
  void call(std::span<PythonCall* const> calls) override {
    sizes.push_back(std::ssize(calls));
    if (throws_) throw std::runtime_error("the interpreter is gone");
    unchanged_.call(calls);
  }
  std::vector<int64_t> sizes;

 private:
  Unchanged unchanged_;
  const bool throws_;
};

class House {
 public:
  explicit House(int workers = 0, bool throws = false)
      : counted_(std::make_shared<Counted>(throws)), workers_(workers) {
    batches_.begin(0, 0);
    reads_.start(order_.reads_from(0, 0, false));
    batches_.go();
  }
  ~House() {
    stop_ = true;
    batches_.end();
    finish_all();
    batches_.clear();
    reads_.stop();
  }

  // Runs of so many rows each, as far as Python; the numbers of their rows.
  std::vector<int64_t> send(size_t runs) {
    std::vector<int64_t> rows;
    while (rows.size() < runs) {
      std::unique_ptr<RecordRun> run = batches_.claim();
      EXPECT_NE(run, nullptr);
      rows.push_back(run->rows.count);
      EXPECT_EQ(advance(*run), RunOutcome::kAtPython);
      batches_.finish(run, RunOutcome::kAtPython);
      python_steps_.add(run);
      EXPECT_EQ(run, nullptr) << "it belongs to the runner now";
    }
    return rows;
  }
  // Runs that are back, to their end.
  int finish_all() {
    int done = 0;
    while (std::unique_ptr<RecordRun> run = batches_.claim()) {
      if (advance(*run) == RunOutcome::kAtPython) {
        batches_.finish(run, RunOutcome::kAtPython);
        python_steps_.add(run);
        return done;
      }
      ++done;
      batches_.finish(run, RunOutcome::kDone);
    }
    return done;
  }
  bool cross() { return python_steps_.work(renderer_); }
  const std::vector<int64_t>& calls() const { return counted_->sizes; }

  std::atomic<bool> stop_{false};
  int woken_ = 0;

 private:
  RunOutcome advance(RecordRun& run) {
    worker_.prepare(renderer_);
    for (;;) {
      const RunOutcome stands = worker_.advance(run, renderer_);
      batches_.note(run);
      if (stands != RunOutcome::kMore) return stands;
    }
  }

  const std::shared_ptr<Counted> counted_;
  const int workers_;
  const SourcePtr source_ = std::make_shared<Numbers>(kRecords);
  const RowTask task_{
      .source = source_,
      .plan = make_plan(source_->schema(), steps({{"counted", {}, {}, counted_}}), PlanOptions()),
      .sampler = sequential(kRecords),
      .layout = BatchLayout(kRecords, kBatch, 0, 1, LastBatch::kKeep)};
  const RecordOrder order_{task_};
  const RecordBytes bytes_{*task_.plan};
  const SlotRings rings_{*task_.plan, {}, kBatch, 3, nullptr, [] {}};
  const MemoryShares shares_{.lists = kMiB, .depth = 3};
  MemoryGate gate_{8 * kMiB, kMiB};
  ReadAhead reads_{source_, task_.plan->wanted(), kMiB};
  PartnerCache kept_{kMiB};
  std::atomic<uint64_t> freed_{0};

 public:
  OpenBatches batches_{
      task_, order_, rings_, shares_, {.threads = 2, .python_workers = workers_, .wake = [] {}}};

 private:
  PythonStepRunner python_steps_{task_, batches_, workers_, [this] { ++woken_; }, stop_};
  const RecordWorker worker_{
      task_, order_, bytes_, {kMiB, kMiB}, {gate_, reads_, kept_, python_steps_, freed_, stop_}};
  Renderer renderer_;
};

TEST(PythonStepRunnerTest, AllWaitingRunsArePassedToPythonInOneCall) {
  House house;
  const std::vector<int64_t> rows = house.send(3);
  EXPECT_TRUE(house.cross());
  EXPECT_EQ(house.calls(), std::vector<int64_t>{rows[0] + rows[1] + rows[2]});
  EXPECT_EQ(house.woken_, 1);
  EXPECT_FALSE(house.cross()) << "nothing waits any more";
  EXPECT_EQ(house.finish_all(), 3);
}

TEST(PythonStepRunnerTest, EachWorkerTakesItsPartOldestFirst) {
  House house(2);
  const std::vector<int64_t> rows = house.send(3);
  EXPECT_TRUE(house.cross());
  EXPECT_TRUE(house.cross());
  EXPECT_FALSE(house.cross());
  EXPECT_EQ(house.calls(), (std::vector<int64_t>{rows[0] + rows[1], rows[2]}));
}

TEST(PythonStepRunnerTest, APythonFailureEndsTheRunsAndReachesTheConsumer) {
  House house(0, /*throws=*/true);
  house.send(2);
  EXPECT_TRUE(house.cross());
  EXPECT_FALSE(house.cross());
  EXPECT_THROW(house.batches_.look(), std::runtime_error);
}

TEST(PythonStepRunnerTest, PythonIsNotCalledAfterAStop) {
  House house;
  house.send(2);
  house.stop_ = true;
  EXPECT_TRUE(house.cross());
  EXPECT_EQ(house.calls(), std::vector<int64_t>{});
  house.batches_.end();
  EXPECT_EQ(house.finish_all(), 2) << "they are settled without it";
}

}  // namespace python_step_runner_test
}  // namespace headrace::scopes_test
