// SPDX-License-Identifier: Apache-2.0
// A worker alone, on the test's thread: no engine, no pool.
#include "headrace/executor/record_worker.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "headrace/base/permutation.h"
#include "headrace/executor/executor_test_ops.h"
#include "headrace/executor/executor_test_worker.h"
#include "headrace/executor/memory/slots.h"
#include "headrace/sources/columns/columns.h"
#include "headrace/sources/source_around.h"

namespace headrace::scopes_test {
namespace record_worker_test {

constexpr int64_t kRecords = 64, kBatch = 24;
constexpr size_t kMiB = LentWorker::kMiB;

// A worker and its batches.
class Workplace {
 public:
  Workplace(const SourcePtr& source, const Pipeline& pipeline, OnError on_error = OnError::kRaise,
            const PlanOptions& options = {})
      : lent_({.source = source,
               .plan = make_plan(source->schema(), pipeline, options),
               .sampler = shuffled(source->size()),
               .layout = BatchLayout(source->size(), kBatch, 0, 1, LastBatch::kKeep),
               .seed = 3,
               .on_error = on_error}) {}

  headrace::Rows rows_of_batch(int64_t batch, bool streamed) const {
    const BatchRange range = task_.layout.range(batch);
    return {.epoch = 2,
            .batch = batch,
            .position = range.begin,
            .sequence = streamed ? range.begin : -1,
            .count = static_cast<int>(range.size())};
  }
  BatchBuilder builder(int64_t batch) const {
    return BatchBuilder(*task_.plan, *task_.source, 2, batch, task_.layout.range(batch),
                        [](size_t, size_t bytes) { return make_pages(bytes); }, {});
  }
  void start_stream() { reads_.start(order_.reads_from(2, 0, false)); }
  std::unique_ptr<RecordRun> run(int64_t batch, BatchBuilder& to) const {
    auto run = std::make_unique<RecordRun>();
    run->rows = rows_of_batch(batch, true);
    run->to = &to;
    return run;
  }
  // Until the run is done, or lacks memory. What it reports is added up.
  RunOutcome drive(RecordRun& run, RowsReport& sum) {
    for (;;) {
      const RunOutcome stands = worker_.advance(run, renderer_);
      sum.settled += std::exchange(run.report.settled, 0);
      sum.warnings += std::exchange(run.report.warnings, 0);
      sum.list_bytes += std::exchange(run.report.list_bytes, 0);
      sum.failures.splice(sum.failures.end(), run.report.failures);
      ++turns_[stands];
      if (stands == RunOutcome::kAtPython) call_python(run);
      if (stands == RunOutcome::kDone || stands == RunOutcome::kLacksMemory) return stands;
    }
  }
  RowsReport fill(headrace::Rows rows, BatchBuilder& to) {
    return worker_.fill(rows, to, renderer_);
  }
  void expect_nothing_lent() {
    reads_.stop();
    EXPECT_EQ(gate_.used(), 0u);
    EXPECT_EQ(reads_.held_bytes(), 0u);
  }

  LentWorker lent_;
  const RowTask& task_ = lent_.task;
  const RecordOrder& order_ = lent_.order;
  MemoryGate& gate_ = lent_.gate;
  ReadAhead& reads_ = lent_.reads;
  std::atomic<bool>& stop_ = lent_.stop;
  const RecordWorker& worker_ = lent_.worker;
  Renderer renderer_;
  std::map<RunOutcome, int> turns_;

 private:
  void call_python(RecordRun& run) {
    std::map<int, std::vector<PythonCall*>> by_step;
    for (InFlight& flight : run.flight) {
      if (flight.at_python()) by_step[flight.step].push_back(&*flight.call);
    }
    for (auto& [step, calls] : by_step) lent_.call(step, calls);
  }
};

SourcePtr numbers(std::set<int64_t> bad = {}, ReadStyle style = ReadStyle::kMemory) {
  return std::make_shared<Numbers>(kRecords, std::move(bad), style);
}

const std::map<std::string, Pipeline>& pipelines() {
  static const std::map<std::string, Pipeline> all = {
      {"nothing", steps({})},
      {"partners", steps({add_partners(3)})},
      {"near partners", steps({add_partners(2, 16)})},
      {"python", steps({unchanged()})},
      {"python after partners", steps({add_partners(2), unchanged()})}};
  return all;
}

TEST(RecordWorkerTest, AnyPartOfABatchHasTheRowsOfTheWhole) {
  for (const auto& [name, pipeline] : pipelines()) {
    Workplace place(numbers(), pipeline);
    Draws draws(1, 2, 3, hash_name("cuts"));
    const headrace::Rows whole = place.rows_of_batch(1, false);
    BatchBuilder expected = place.builder(1), cut = place.builder(1);
    EXPECT_EQ(place.fill(whole, expected).settled, kBatch);
    for (int first = 0; first < kBatch;) {
      headrace::Rows part = whole;
      part.first = first;
      part.count = 1 + int(draws.below(kBatch - first));
      EXPECT_EQ(place.fill(part, cut).settled, part.count);
      first += part.count;
    }
    EXPECT_EQ(rows_of(cut.finish()), rows_of(expected.finish())) << name;
    place.expect_nothing_lent();
  }
}

TEST(RecordWorkerTest, RunsOfAStreamGiveTheRowsThatAreMadeAlone) {
  for (const auto& [name, pipeline] : pipelines()) {
    for (const ReadStyle style : {ReadStyle::kMemory, ReadStyle::kFiles}) {
      Workplace place(numbers({}, style), pipeline);
      place.start_stream();
      for (int64_t batch = 0; batch < place.task_.layout.batches(); ++batch) {
        BatchBuilder alone = place.builder(batch), streamed = place.builder(batch);
        place.fill(place.rows_of_batch(batch, false), alone);
        const std::unique_ptr<RecordRun> run = place.run(batch, streamed);
        RowsReport report;
        EXPECT_EQ(place.drive(*run, report), RunOutcome::kDone);
        EXPECT_EQ(report.settled, streamed.rows());
        EXPECT_EQ(run->activity.kind.load(), RunActivity::Kind::kMakes);
        EXPECT_EQ(rows_of(streamed.finish()), rows_of(alone.finish())) << name << " " << batch;
      }
      place.expect_nothing_lent();
    }
  }
}

// The report on a batch with bad records: by row, and what was done.
std::map<int, std::string> reported(const RowsReport& report) {
  std::map<int, std::string> out;
  for (const RowFailure& failure : report.failures) {
    out[failure.row] = failure.fatal ? "fatal: " + failure.error.note : failure.action;
  }
  return out;
}

TEST(RecordWorkerTest, ABadRecordFollowsThePolicyOnEveryPath) {
  for (const auto& [name, pipeline] : pipelines()) {
    for (const OnError on_error : {OnError::kRaise, OnError::kSkip, OnError::kSubstitute}) {
      const RecordOrder order =
          Workplace(numbers(), pipeline).order_;  // the same for all: bad records change no order
      const int64_t bad = order.index_at(2, 5);
      Workplace place(numbers({bad}), pipeline, on_error);
      place.start_stream();
      BatchBuilder streamed = place.builder(0), alone = place.builder(0);
      const std::unique_ptr<RecordRun> run = place.run(0, streamed);
      RowsReport by_run;
      EXPECT_EQ(place.drive(*run, by_run), RunOutcome::kDone);
      EXPECT_EQ(by_run.settled, kBatch);
      ASSERT_FALSE(by_run.failures.empty());
      for (const RowFailure& failure : by_run.failures) {
        EXPECT_EQ(failure.record, bad) << name << ": also where it is a partner";
        EXPECT_EQ(failure.error.code->id, kPlanted.id);
        EXPECT_EQ(failure.fatal, on_error == OnError::kRaise);
      }
      const RowsReport by_fill = place.fill(place.rows_of_batch(0, false), alone);
      if (on_error == OnError::kRaise) {
        EXPECT_EQ(by_fill.failures.size(), 1u) << "it ends there";
      } else {
        EXPECT_EQ(reported(by_fill), reported(by_run)) << name;
        EXPECT_EQ(rows_of(alone.finish()), rows_of(streamed.finish())) << name;
        EXPECT_NE(reported(by_run)[5].find(on_error == OnError::kSkip ? "skipped" : "substituted"),
                  std::string::npos);
      }
      place.expect_nothing_lent();
    }
  }
}

TEST(RecordWorkerTest, SubstitutionEndsAfterAHundredOrAStorageFailure) {
  std::set<int64_t> all;
  for (int64_t i = 0; i < kRecords; ++i) all.insert(i);
  for (const bool outage : {false, true}) {
    for (const std::string name : {"nothing", "python"}) {
      const auto source = std::make_shared<Numbers>(kRecords, all);
      source->outage = outage;
      Workplace place(source, pipelines().at(name), OnError::kSubstitute);
      place.start_stream();
      BatchBuilder builder = place.builder(0);
      const std::unique_ptr<RecordRun> run = place.run(0, builder);
      RowsReport report;
      EXPECT_EQ(place.drive(*run, report), RunOutcome::kDone);
      EXPECT_EQ(std::ssize(report.failures), kBatch);
      for (const auto& [row, what] : reported(report)) {
        EXPECT_EQ(what, outage ? "fatal: " : "fatal: and 100 substitutes were bad as well");
      }
    }
  }
}

// Stops its reader at one of its reads.
class StoppedAt final : public SourceAround {
 public:
  StoppedAt(SourcePtr below, int64_t at, std::function<void()> stop)
      : SourceAround(std::move(below)), left_(at), stop_(std::move(stop)) {}
  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override {
    inner()->read(indices, wanted, out);
    if (left_-- == 0) stop_();
  }

 private:
  mutable int64_t left_;
  std::function<void()> stop_;
};

TEST(RecordWorkerTest, AStopAtAnyReadReturnsEverythingLent) {
  for (const auto& [name, pipeline] : pipelines()) {
    for (int64_t at = 0; at < 30; at += 3) {
      std::atomic<bool>* stop = nullptr;
      Workplace place(
          std::make_shared<StoppedAt>(numbers({}, ReadStyle::kFiles), at, [&] { *stop = true; }),
          pipeline);
      stop = &place.stop_;
      place.start_stream();
      BatchBuilder builder = place.builder(0);
      const std::unique_ptr<RecordRun> run = place.run(0, builder);
      RowsReport report;
      EXPECT_EQ(place.drive(*run, report), RunOutcome::kDone) << name;
      EXPECT_EQ(report.settled, kBatch) << name << " at " << at;
      place.expect_nothing_lent();
    }
  }
}

TEST(RecordWorkerTest, WithPythonStepsARunWithoutMemoryIsResumedLater) {
  std::vector<uint8_t> pixels(kRecords * 3 * 64 * 64);
  const SourcePtr source =
      records({{.name = "value",
                .values = ArrayColumn{pixels.data(), DType::kUInt8, kRecords, {3, 64, 64}, {}},
                .kind = FieldKind::kImage}});
  Workplace place(source, steps({unchanged()}));
  place.start_stream();
  BatchBuilder builder = place.builder(0);
  const std::unique_ptr<RecordRun> run = place.run(0, builder);
  RowsReport report;
  {
    const std::optional<GateHold> others = place.gate_.try_acquire(8 * kMiB - 1);
    ASSERT_TRUE(others);
    EXPECT_EQ(place.drive(*run, report), RunOutcome::kLacksMemory);
    EXPECT_EQ(report.settled, 0);
  }
  EXPECT_EQ(place.drive(*run, report), RunOutcome::kDone);
  EXPECT_EQ(report.settled, kBatch);
  EXPECT_EQ(place.turns_[RunOutcome::kAtPython], 1);
  place.expect_nothing_lent();
}

// Records of one, two or three numbers.
class Lengths final : public Source {
 public:
  Lengths() {
    schema_.push_back(
        {.name = "value", .kind = FieldKind::kTensor, .dtype = DType::kInt64, .shape = {-1}});
  }
  int64_t size() const override { return kRecords; }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override { return ReadStyle::kMemory; }
  void read(std::span<const int64_t> indices, const std::vector<bool>&,
            std::span<RecordData> out) const override {
    out[0].result = {};
    out[0].fields.resize(1);
    out[0].owned.resize(1);
    const int64_t count = 1 + indices[0] % 3;
    out[0].owned[0].resize(size_t(count) * 8);
    std::fill_n(reinterpret_cast<int64_t*>(out[0].owned[0].data()), count, indices[0]);
    out[0].fields[0] = {.bytes = out[0].owned[0].bytes(), .shape = {count}};
  }
  std::string key(int64_t index) const override { return std::to_string(index); }
  uint64_t fingerprint() const override { return 2; }
  std::string description() const override { return "lengths"; }

 private:
  Schema schema_;
};

// Fails for the first record that it gets.
class FailsOnce final : public PythonFunction {
 public:
  std::string name() const override { return "fails_once"; }
  std::vector<std::string> inputs() const override { return {"value"}; }
  void call(std::span<PythonCall* const> calls) override {
    unchanged_.call(calls);
    if (!std::exchange(failed_, true)) calls[0]->result = Error{.code = &kPlanted, .what = "once"};
  }

 private:
  Unchanged unchanged_;
  bool failed_ = false;
};

// The first row comes back as bad and its substitute goes to Python, in the same sweep in which the
// others write their lists, of which each is reported at once.
TEST(RecordWorkerTest, ASweepThatReportsAListContinuesAfterThatRow) {
  PlanOptions options;
  options.ragged = Ragged::kList;
  Workplace place(std::make_shared<Lengths>(),
                  steps({{"fails_once", {}, {}, std::make_shared<FailsOnce>()}}),
                  OnError::kSubstitute, options);
  place.start_stream();
  BatchBuilder builder = place.builder(0);
  const std::unique_ptr<RecordRun> run = place.run(0, builder);
  RowsReport report;
  EXPECT_EQ(place.drive(*run, report), RunOutcome::kDone);
  EXPECT_EQ(report.settled, kBatch);
  EXPECT_EQ(place.turns_[RunOutcome::kAtPython], 2);
  EXPECT_EQ(place.turns_[RunOutcome::kMore], kBatch);
  const Batch batch = builder.finish();
  size_t bytes = 0;
  for (const TensorView& item : batch.fields[0].items) bytes += item.dense_bytes();
  EXPECT_EQ(report.list_bytes, bytes);
  EXPECT_EQ(reported(report).begin()->second.rfind("substituted by record", 0), 0u);
}

}  // namespace record_worker_test
}  // namespace headrace::scopes_test
