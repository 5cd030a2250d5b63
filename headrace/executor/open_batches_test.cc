// SPDX-License-Identifier: Apache-2.0
// The claims, reports and batches of workers, Python threads and a consumer, all played by one
// thread: the next move is drawn at random, so a lost wake-up shows as a deadlock, and a seed
// reproduces it.
#include "headrace/executor/open_batches.h"

#include <gtest/gtest.h>

#include <set>

#include "headrace/base/permutation.h"
#include "headrace/executor/executor_test_numbers.h"

namespace headrace {
namespace {

constexpr int64_t kRecords = 70, kBatch = 8;
constexpr int kWorkers = 3, kDepth = 3;
constexpr size_t kListShare = 100;
constexpr int kMemory = 12;  // rows that may be in work at once

// Tensors of any length, delivered as lists; and 64 KiB a batch, which come from a ring, or less,
// which does not.
Schema schema(bool pooled) {
  return {{.name = "list", .kind = FieldKind::kTensor, .dtype = DType::kInt64, .shape = {-1}},
          {.name = "slot",
           .kind = FieldKind::kTensor,
           .dtype = DType::kInt64,
           .shape = {pooled ? 1024 : 1}}};
}

PlanOptions lists() {
  PlanOptions options;
  options.ragged = Ragged::kList;
  return options;
}

class SchemaOnly final : public Source {
 public:
  explicit SchemaOnly(bool pooled) : schema_(headrace::schema(pooled)) {}
  int64_t size() const override { return kRecords; }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override { return ReadStyle::kMemory; }
  void read(std::span<const int64_t>, const std::vector<bool>&,
            std::span<RecordData>) const override {}
  std::string key(int64_t index) const override { return std::to_string(index); }
  uint64_t fingerprint() const override { return 0; }
  std::string description() const override { return "schema"; }

 private:
  const Schema schema_;
};

class Play {
 public:
  Play(uint64_t seed, bool pooled)
      : draws_(seed, 0, 0, hash_name("play")), source_(std::make_shared<SchemaOnly>(pooled)) {
    begin();
  }

  void move() {
    const int64_t who = draws_.below(100);
    if (who < 60) {
      work(workers_[size_t(draws_.below(kWorkers))]);
    } else if (who < 75) {
      cross();
    } else if (who < 98) {
      consume();
    } else if (draws_.below(20) == 0) {
      begin_again();
    }
    check_liveness();
  }
  int64_t batches() const { return batches_; }

 private:
  struct Worker {
    std::unique_ptr<RecordRun> run;
    bool sleeps = false;
    int holds = 0;
  };

  void begin() {
    expected_ = draws_.below(task_.layout.batches());
    batches_open_.begin(0, expected_);
    claimed_.clear();
    failed_.clear();
    listed_.clear();
    parked_.clear();
    consumer_waits_ = false;
    batches_open_.go();
    wake();
  }
  void begin_again() {
    batches_open_.end();
    stop_ = true;
    wake();
    while (!batches_open_.wait_idle(std::chrono::milliseconds(0))) {
      for (Worker& worker : workers_) work(worker);
      cross();
    }
    batches_open_.clear();
    stop_ = false;
    kept_.clear();
    EXPECT_EQ(batches_open_.open(), 0);
    EXPECT_EQ(batches_open_.stats().memory_used, 0u);
    EXPECT_EQ(held_, 0);
    begin();
  }
  void wake() {
    for (Worker& worker : workers_) worker.sleeps = false;
  }

  void work(Worker& worker) {
    if (worker.sleeps) return;
    if (!worker.run) {
      worker.run = batches_open_.claim();
      if (!worker.run) worker.sleeps = true;
      if (worker.run && !worker.run->begun) check_claim(worker.run->rows);
      return;
    }
    RecordRun& run = *worker.run;
    if (!run.begun && !stop_) {  // all its memory at once
      if (held_ + run.rows.count > kMemory && held_ > 0) {
        parked_.insert({run.rows.batch, run.rows.first});
        batches_open_.finish(worker.run, RunOutcome::kLacksMemory);
        worker.sleeps = true;
        return;
      }
      held_ += run.rows.count;
      run.begun = true;
      run.taken = 0;
      run.lacks_memory = draws_.below(3) == 0;  // here: it has to go to Python
    }
    if (run.lacks_memory && !stop_) {
      run.lacks_memory = false;
      batches_open_.finish(worker.run, RunOutcome::kAtPython);
      at_python_.push_back(std::move(worker.run));
      return;
    }
    const int rest = run.rows.count - run.taken;
    const int rows = stop_ ? rest : 1 + int(draws_.below(rest));
    for (int i = 0; i < rows; ++i) settle(run, run.rows.first + run.taken++);
    batches_open_.note(run);
    EXPECT_TRUE(run.report.failures.empty());
    if (run.taken < run.rows.count) return;
    if (run.begun) held_ -= run.rows.count;
    run.taken = 0;
    batches_open_.finish(worker.run, RunOutcome::kDone);
    wake();  // it goes on, and finds the runs that wait for its memory
  }
  void settle(RecordRun& run, int row) {
    ++run.report.settled;
    run.to->drop(row);
    if (stop_) return;
    const auto bytes = size_t(draws_.below(20));
    run.report.list_bytes += bytes;
    listed_[run.rows.batch] += bytes;
    if (draws_.below(6) > 0) return;
    run.report.failures.push_back({.row = row, .record = row, .error = {.code = &kPlanted}});
    failed_.insert({run.rows.batch, row});
  }
  // In order, and each once.
  void check_claim(const Rows& rows) {
    if (parked_.erase({rows.batch, rows.first})) return;
    auto& of_batch = claimed_[rows.batch];
    EXPECT_EQ(rows.first, of_batch);
    EXPECT_GT(rows.count, 0);
    of_batch += rows.count;
    EXPECT_LE(of_batch, task_.layout.range(rows.batch).size());
    EXPECT_LE(batches_open_.open(), kDepth);
  }
  void cross() {
    if (at_python_.empty()) return;
    batches_open_.go_on(at_python_, 0);
    at_python_.clear();
    wake();
  }

  void consume() {
    if (draws_.below(3) == 0 && !kept_.empty()) kept_.erase(kept_.begin());  // wakes by itself
    if (kept_.size() == kDepth) return;
    OpenBatches::Look look;
    try {
      look = batches_open_.look();
    } catch (const Exception& refused) {
      EXPECT_EQ(refused.error().code->id, "HR0705");
      return begin_again();
    }
    consumer_waits_ = look.kind == OpenBatches::Look::Kind::kNotYet;
    if (look.kind == OpenBatches::Look::Kind::kEnd) {
      EXPECT_EQ(expected_, task_.layout.batches());
      return begin_again();
    }
    if (look.kind != OpenBatches::Look::Kind::kBatch) return;
    OpenBatch& open = *look.batch;
    EXPECT_EQ(open.builder.index(), expected_++);
    EXPECT_EQ(claimed_[open.builder.index()], open.builder.rows());
    std::set<std::pair<int64_t, int>> failed;
    for (const RowFailure& failure : open.ledger.failures()) {
      failed.insert({open.builder.index(), failure.row});
    }
    for (const auto& failure : failed) EXPECT_EQ(failed_.erase(failure), 1u);
    for (const auto& [batch, row] : failed_) EXPECT_NE(batch, open.builder.index()) << row;
    Batch batch = open.builder.finish();
    batches_open_.leave(open, batch);
    listed_.erase(batch.index);
    size_t listed = 0;
    for (const auto& [number, bytes] : listed_) listed += bytes;
    EXPECT_EQ(batches_open_.stats().memory_used, listed);
    kept_.push_back(std::move(batch));
    ++batches_;
    wake();
  }
  // Where no worker can go on, a consumer that keeps nothing gets something.
  void check_liveness() {
    const bool all_sleep = std::ranges::all_of(workers_, &Worker::sleeps);
    if (!all_sleep || !at_python_.empty() || !kept_.empty()) return;
    consume();
    ASSERT_FALSE(consumer_waits_) << "no worker can go on";
  }

  Draws draws_;
  const SourcePtr source_;
  const RowTask task_{.source = source_,
                      .plan = make_plan(source_->schema(), {}, lists()),
                      .sampler = sequential(kRecords),
                      .layout = BatchLayout(kRecords, kBatch, 0, 1, LastBatch::kKeep)};
  const RecordOrder order_{task_};
  const SlotRings rings_{*task_.plan, {}, kBatch, kDepth, nullptr, [this] { wake(); }};
  const MemoryShares shares_{.lists = kListShare, .depth = kDepth};
  std::vector<Worker> workers_{kWorkers};
  OpenBatches batches_open_{
      task_, order_, rings_, shares_, {.threads = kWorkers, .wake = [this] { wake(); }}};
  std::vector<std::unique_ptr<RecordRun>> at_python_;
  std::vector<Batch> kept_;
  std::map<int64_t, int64_t> claimed_;        // rows of each batch
  std::set<std::pair<int64_t, int>> failed_;  // reported and not yet handed over
  std::set<std::pair<int64_t, int>> parked_;  // runs, by their first rows
  std::map<int64_t, size_t> listed_;          // bytes of lists by batch
  int64_t expected_ = 0, batches_ = 0;
  int held_ = 0;
  bool stop_ = false, consumer_waits_ = false;
};

TEST(OpenBatchesTest, RowsAreClaimedOnceAndBatchesStayInOrder) {
  for (uint64_t seed = 0; seed < 40 && !testing::Test::HasFailure(); ++seed) {
    Play play(seed, seed % 2 == 0);
    for (int move = 0; move < 1500 && !testing::Test::HasFailure(); ++move) play.move();
    EXPECT_GT(play.batches(), 20) << "seed " << seed;
  }
}

}  // namespace
}  // namespace headrace
