// SPDX-License-Identifier: Apache-2.0
// Rows that are lent, made by another engine, and returned in any order, late, twice or never, by a
// thread next to the consumer: batches, errors and counts are the same as with an engine alone.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <thread>

#include "headrace/base/clock.h"
#include "headrace/base/random.h"
#include "headrace/executor/engine.h"
#include "headrace/executor/executor_test_ops.h"

namespace headrace::scopes_test {
namespace lent_rows_test {

constexpr int64_t kRecords = 150, kBatch = 32;

EngineOptions options_of(const SourcePtr& source, const Pipeline& pipeline, OnError on_error,
                         bool lends) {
  const auto plan = make_plan(source->schema(), pipeline, {});
  const int64_t group = plan->batch_group();
  return {.task = {.source = source,
                   .plan = plan,
                   .sampler = shuffled(source->size()),
                   .layout = BatchLayout(source->size(), kBatch, 0, 1, LastBatch::kKeep, group),
                   .seed = 9,
                   .on_error = on_error},
          .threads = 2,
          .memory_limit = size_t{128} << 20,
          .warn = {},
          .lends = lends};
}

// Bytes of rows, as they cross.
struct Parcel {
  int64_t number = 0;
  RowsResult made;
  std::vector<std::vector<uint8_t>> memory;
};

Parcel made_by(Engine& maker, const std::vector<Output>& outputs, const LentRows& rows) {
  Parcel out{.number = rows.number, .made = {}, .memory = {}};
  out.memory.resize(outputs.size());
  out.made = maker.make_rows(rows, [&](size_t output, size_t bytes) {
    out.memory[output].resize(bytes);
    return std::shared_ptr<void>(out.memory[output].data(), [](void*) {});
  });
  return out;
}

RowBytes bytes_of(const Parcel& parcel) { return {parcel.memory.begin(), parcel.memory.end()}; }

// Takes rows as long as it runs. Some it brings back at once, some later, some twice, some never,
// and some it gives back.
class Neighbor {
 public:
  Neighbor(Engine& engine, EngineOptions options, uint64_t seed)
      : engine_(engine),
        outputs_(options.task.plan->outputs()),
        maker_(std::move(options), bad_),
        draws_(seed, 0, 0, hash_name("neighbor")),
        thread_([this] { run(); }) {}
  ~Neighbor() {
    ends_ = true;
    thread_.join();
  }
  int64_t arrived() const { return arrived_; }

 private:
  void run() {
    std::deque<Parcel> kept;
    while (!ends_) {
      const int64_t what = draws_.below(8);
      // The wait has no limit here, however slow this thread is.
      const double patience_seconds = what < 3 ? 0.02 : 60;
      const std::optional<LentRows> rows =
          engine_.rows_ahead(1 + static_cast<int>(draws_.below(12)), patience_seconds);
      if (!rows) {
        std::this_thread::yield();
      } else {
        if (what == 0) continue;  // never: the consumer's patience ends
        if (what == 1) {
          engine_.rows_returned(rows->number);
          if (draws_.below(2) > 0) continue;  // and comes with them all the same
        }
        kept.push_back(made_by(maker_, outputs_, *rows));
      }
      if (kept.empty() || (rows && draws_.below(3) > 0)) continue;
      const Parcel parcel = std::move(kept.front());
      kept.pop_front();
      RowsResult made = parcel.made, again = parcel.made;
      arrived_ += engine_.rows_arrived(parcel.number, std::move(made), bytes_of(parcel));
      EXPECT_FALSE(engine_.rows_arrived(parcel.number, std::move(again), bytes_of(parcel)));
    }
  }

  Engine& engine_;
  const std::vector<Output> outputs_;
  BadRecords bad_{1000, 1, {}};
  Engine maker_;
  Draws draws_;
  std::atomic<bool> ends_{false};
  std::atomic<int64_t> arrived_{0};
  std::thread thread_;
};

using Fields = std::vector<std::vector<uint8_t>>;  // of a batch

Fields bytes_of(const Batch& batch) {
  Fields out;
  for (const BatchField& field : batch.fields) {
    const auto* data = static_cast<const uint8_t*>(field.view.data);
    out.emplace_back(data, data + field.view.dense_bytes());
  }
  return out;
}

std::vector<Fields> rest_of(Engine& engine) {
  std::vector<Fields> out;
  while (const std::optional<Batch> batch = engine.next({})) out.push_back(bytes_of(*batch));
  return out;
}

struct Told {
  int64_t position, record;
  std::string action, what;
  bool operator==(const Told&) const = default;
};

std::vector<Told> told(const BadRecords& bad) {
  std::vector<Told> out;
  for (const BadRecord& each : bad.list()) {
    out.push_back({each.position, each.record, each.action, each.error.message()});
  }
  return out;
}

TEST(LentRowsTest, BatchesEqualThoseOfAnEngineAlone) {
  const std::map<std::string, ReadStyle> styles = {{"nothing", ReadStyle::kFiles},
                                                   {"partners", ReadStyle::kFiles},
                                                   {"mixed", ReadStyle::kPython},
                                                   {"python", ReadStyle::kMemory}};
  const std::map<std::string, Pipeline> pipelines = {{"nothing", steps({})},
                                                     {"partners", steps({add_partners(3)})},
                                                     {"mixed", steps({mix(4)})},
                                                     {"python", steps({unchanged()})}};
  for (const auto& [name, pipeline] : pipelines) {
    for (const OnError on_error : {OnError::kSkip, OnError::kSubstitute}) {
      const SourcePtr source =
          std::make_shared<Numbers>(kRecords, std::set<int64_t>{7, 8, 70, 140}, styles.at(name));
      BadRecords here(1000, 1, {}), there(1000, 1, {});
      Engine alone(options_of(source, pipeline, on_error, false), here);
      Engine engine(options_of(source, pipeline, on_error, true), there);
      Neighbor neighbor(engine, options_of(source, pipeline, on_error, false), 3);
      const double begun = now();
      // On a busy machine the neighbor may come to nothing for hundreds of epochs.
      for (int epoch = 0; epoch < 3 || neighbor.arrived() == 0; ++epoch) {
        ASSERT_LT(now() - begun, 300) << name;
        here.begin_epoch(0);
        alone.start(epoch, 0);
        const std::vector<Fields> expected = rest_of(alone);
        there.begin_epoch(0);
        engine.start(epoch, 0);
        if (epoch == 1) {  // left in the middle, and begun again
          EXPECT_TRUE(engine.next({}));
          there.begin_epoch(0);
          engine.start(epoch, 0);
        }
        EXPECT_EQ(rest_of(engine), expected) << name << " " << epoch;
      }
      EXPECT_EQ(told(there), told(here)) << name;
    }
  }
}

// A Python step that takes as long as the test wants.
class Held final : public Unchanged {
 public:
  void call(std::span<PythonCall* const> calls) override {
    begun = true;
    while (!released) std::this_thread::yield();
    Unchanged::call(calls);
  }
  std::atomic<bool> begun{false}, released{false};
};

TEST(LentRowsTest, ASlowPythonStepLeavesRowsToOthers) {
  const SourcePtr source = std::make_shared<Numbers>(kRecords);
  BadRecords bad(0, 0, {}), there(0, 0, {});
  const auto held = std::make_shared<Held>();
  Engine alone(options_of(source, steps({unchanged()}), OnError::kRaise, false), bad);
  alone.start(0, 0);
  const std::vector<Fields> expected = rest_of(alone);

  const EngineOptions others = options_of(source, steps({unchanged()}), OnError::kRaise, false);
  Engine maker(others, there);
  Engine engine(options_of(source, steps({{"held", {}, {}, held}}), OnError::kRaise, true), bad);
  engine.start(0, 0);
  while (!held->begun) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // in which all could be claimed
  int lent = 0;
  while (const auto rows = engine.rows_ahead(8, 1000)) {
    Parcel parcel = made_by(maker, others.task.plan->outputs(), *rows);
    EXPECT_TRUE(engine.rows_arrived(rows->number, std::move(parcel.made), bytes_of(parcel)));
    lent += rows->count;
  }
  EXPECT_GT(lent, kRecords / 2);
  held->released = true;
  EXPECT_EQ(rest_of(engine), expected);
}

TEST(LentRowsTest, AFatalErrorInAnotherProcessIsRaisedAtItsBatch) {
  const SourcePtr source = std::make_shared<Numbers>(kRecords, std::set<int64_t>{33});
  BadRecords here(0, 0, {}), there(0, 0, {});
  Engine alone(options_of(source, {}, OnError::kRaise, false), here);
  Engine engine(options_of(source, {}, OnError::kRaise, true), there);
  const auto end = [](Engine& each) {
    each.start(0, 0);
    int batches = 0;
    try {
      while (each.next({})) ++batches;
    } catch (const Exception& error) {
      return std::to_string(batches) + error.what();
    }
    return std::string();
  };
  const std::string expected = end(alone);
  EXPECT_NE(expected, "");
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Neighbor neighbor(engine, options_of(source, {}, OnError::kRaise, false), seed);
    EXPECT_EQ(end(engine), expected);
  }
}

// The engine that lends them decides whether the run ends, after reading the records itself.
TEST(LentRowsTest, RowsAreNotMadeWhereTheStorageFails) {
  const auto source = std::make_shared<Numbers>(kRecords, std::set<int64_t>{33});
  for (const OnError on_error : {OnError::kRaise, OnError::kSkip, OnError::kSubstitute}) {
    BadRecords bad(1000, 1, {});
    const EngineOptions options = options_of(source, {}, on_error, false);
    const std::vector<Output> outputs = options.task.plan->outputs();
    Engine maker(options, bad);
    const auto codes = [&] {
      std::string found;
      for (int64_t batch = 0; batch < options.task.layout.batches(); ++batch) {
        LentRows rows;
        rows.batch = batch;
        rows.count = static_cast<int>(options.task.layout.range(batch).size());
        try {
          const RowsResult made = made_by(maker, outputs, rows).made;
          for (const RowFailure& each : made.failures) found += each.error.code->id;
        } catch (const Exception& error) {
          found += "thrown " + std::string(error.error().code->id);
        }
      }
      return found;
    };
    source->outage = false;
    EXPECT_EQ(codes(), kPlanted.id);
    source->outage = true;
    EXPECT_EQ(codes(), "thrown " + std::string(kPlantedStorage.id));
  }
}

TEST(LentRowsTest, RowsAreNotMadeWhereTheSystemRefusesMemory) {
  try {
    throw std::bad_alloc();
  } catch (const std::exception&) {
    RowFailure failure{.error = error_from_current_exception(), .action = "skipped"};
    EXPECT_TRUE(is_bad_record(failure.error));
    EXPECT_TRUE(may_succeed_elsewhere(failure));
    failure.error.code = &kPlanted;
    EXPECT_FALSE(may_succeed_elsewhere(failure));
  }
}

TEST(LentRowsTest, RowsOfAnotherLoaderOfTheProcessAreNotTaken) {
  const SourcePtr source = std::make_shared<Numbers>(kRecords);
  BadRecords bad(0, 0, {}), also_bad(0, 0, {});
  Engine engine(options_of(source, {}, OnError::kRaise, true), bad);
  Engine other(options_of(source, {}, OnError::kRaise, true), also_bad);
  engine.start(0, 0);
  other.start(0, 0);
  const std::optional<LentRows> rows = engine.rows_ahead(8, 1000);
  const std::optional<LentRows> others = other.rows_ahead(8, 1000);
  ASSERT_TRUE(rows && others);
  EXPECT_FALSE(other.rows_are_out(rows->number));
  EXPECT_FALSE(other.rows_arrived(rows->number, {}, {}));
  other.rows_returned(rows->number);
  EXPECT_TRUE(other.rows_are_out(others->number));
  EXPECT_TRUE(engine.rows_are_out(rows->number));
}

TEST(LentRowsTest, NothingIsLentWhereNothingIsDelivered) {
  const SourcePtr source = std::make_shared<Numbers>(kRecords);
  BadRecords bad(0, 0, {});
  Engine engine(options_of(source, {}, OnError::kRaise, true), bad);
  EXPECT_FALSE(engine.rows_ahead(8, 1));
  engine.start(0, 0);
  const std::optional<LentRows> rows = engine.rows_ahead(8, 1000);
  ASSERT_TRUE(rows);
  EXPECT_TRUE(engine.rows_are_out(rows->number));
  EXPECT_THROW((void)engine.rows_arrived(rows->number, {}, {}), Exception) << "not of this size";
  engine.stop();
  EXPECT_FALSE(engine.rows_are_out(rows->number));
  EXPECT_FALSE(engine.rows_arrived(rows->number, {}, {}));
  engine.rows_returned(rows->number);
  engine.start(0, 0);
  EXPECT_EQ(rest_of(engine).size(), 5u);
}

}  // namespace lent_rows_test
}  // namespace headrace::scopes_test
