// SPDX-License-Identifier: Apache-2.0
// A loader when system calls fail: any single memory allocation, or the creation of a thread. The
// process neither terminates nor hangs; there is either an error, or the usual batches.
//
// This program replaces operator new and pthread_create for all libraries.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <numeric>

#include "headrace/base/allocations_test_hook.h"
#include "headrace/base/sweep_test_width.h"
#include "headrace/executor/executor_test_ops.h"
#include "headrace/executor/reading/read_ahead.h"
#include "headrace/executor/threads/thread_pool.h"
#include "headrace/loader/loader_test_numbers.h"
#include "headrace/sources/columns/columns.h"
#include "headrace/sources/python_function.h"
#include "headrace/storage/memory_files.h"

namespace {

// Allocations are counted; the ones with these numbers fail.
std::atomic<int64_t> allocations{0}, first_refused{0}, last_refused{0};
std::atomic<int64_t> refuse_thread_at{0};
thread_local bool spared = false;  // the test's own

bool is_refused() {
  if (spared || last_refused.load(std::memory_order_relaxed) == 0) return false;
  const int64_t number = ++allocations;
  return number >= first_refused && number <= last_refused;
}

}  // namespace

void headrace::before_allocation() {
  if (is_refused()) throw std::bad_alloc();
}

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*body)(void*), void* argument) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const Create create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  if (refuse_thread_at > 0 && --refuse_thread_at == 0) return EAGAIN;
  return create(thread, attributes, body, argument);
}

namespace headrace {
namespace {

struct Spared {
  Spared() { spared = true; }
  ~Spared() { spared = false; }
};

const int64_t kEach = 40 / kSweepStep;

// Calls `use` repeatedly, making the first, second, third, ... allocation fail, with this many
// after it, until it makes no more allocations. Beyond `each`, numbers advance in steps, so that
// the test ends.
template <class Use>
void refuse_each_allocation(int64_t after, Use&& use, int64_t each = kEach) {
  for (int64_t at = 1; at < 100'000; at += 1 + at / each) {
    allocations = 0;
    first_refused = at;
    last_refused = at + after;
    use();
    last_refused = 0;
    if (allocations < at) return;
  }
}

LoaderOptions refusal_options(OnError on_error) {
  LoaderOptions out = options(16, 3);
  out.on_error = on_error;
  out.error_budget = 1'000'000;
  out.error_rate = 1;
  return out;
}

// The batches of an epoch; a call that fails is repeated. Failures end soon, so all batches are
// delivered.
std::vector<std::vector<int64_t>> epoch_despite_failures(Loader& loader, int64_t& failures) {
  std::vector<std::vector<int64_t>> out;
  while (true) {
    try {
      const std::optional<Batch> batch = loader.next();
      if (!batch) return out;
      const Spared test;
      out.push_back(labels_of(*batch));
    } catch (const Exception& failure) {
      const Spared test;
      EXPECT_EQ(failure.error().code->kind, ErrorKind::kResource) << failure.what();
      ++failures;
    } catch (const std::bad_alloc&) {
      ++failures;  // not even an error could be made
    }
  }
}

class Refusals : public testing::TestWithParam<ReadStyle> {};

TEST_P(Refusals, AFailedAllocationDoesNotLoseBatches) {
  const auto source = std::make_shared<Numbers>(100, std::set<int64_t>{}, GetParam());
  const auto expected = [&] {
    Loader loader(source, {}, refusal_options(OnError::kRaise));
    return epoch_of(loader);
  }();
  for (int64_t after : {0, 40}) {
    int64_t failures = 0;
    refuse_each_allocation(after, [&] {
      try {
        Loader loader(source, {}, refusal_options(OnError::kRaise));
        const auto got = epoch_despite_failures(loader, failures);
        const Spared test;
        EXPECT_EQ(got, expected);
      } catch (const Exception& failure) {  // of the constructor
        const Spared test;
        EXPECT_EQ(failure.error().code->kind, ErrorKind::kResource) << failure.what();
      } catch (const std::bad_alloc&) {
        ++failures;
      }
    });
    EXPECT_GT(failures, 0);
  }
}

TEST_P(Refusals, ALoaderEndsWhileAllAllocationsFail) {
  const auto source = std::make_shared<Numbers>(64, std::set<int64_t>{}, GetParam());
  for (const bool in_python : {false, true}) {
    Pipeline pipeline;
    if (in_python) pipeline.transforms.push_back(scopes_test::unchanged());
    int64_t failures = 0;
    const auto use = [&] {
      try {
        Loader loader(source, pipeline, refusal_options(OnError::kRaise));
        while (loader.next()) {
        }
      } catch (const Exception&) {
        ++failures;
      } catch (const std::bad_alloc&) {
        ++failures;
      }
    };
    refuse_each_allocation(int64_t{1} << 40, use);
    EXPECT_GT(failures, 0);
  }
}

// Result of an epoch in which one allocation failed and the failed call was repeated.
struct Outcome {
  std::vector<int64_t> records;  // in order of delivery, by their labels
  std::set<int64_t> reported;    // positions, which are the records: nothing is shuffled
  size_t reports = 0;
  bool raised = false;  // the bad record's own error
};

Outcome outcome_of(Loader& loader) {
  Outcome out;
  while (!out.raised) {
    try {
      const std::optional<Batch> batch = loader.next();
      const Spared test;
      if (!batch) break;
      check_rows(*batch);
      for (const int64_t label : labels_of(*batch)) out.records.push_back(label / 3);
    } catch (const Exception& failure) {
      const Spared test;
      out.raised = failure.error().code->id == kPlanted.id;
    } catch (const std::bad_alloc&) {
    }
  }
  const Spared test;
  for (const BadRecord& bad : loader.quarantine()) {
    out.reported.insert(bad.position);
    ++out.reports;
  }
  return out;
}

// Calls `check` with the result of each failure, for records in order, of which 20 and 50 are bad.
template <class Check>
void each_outcome(ReadStyle style, OnError on_error, Check&& check) {
  const auto source = std::make_shared<Numbers>(64, std::set<int64_t>{20, 50}, style);
  for (const bool in_python : {false, true}) {
    Pipeline pipeline;
    if (in_python) pipeline.transforms.push_back(scopes_test::unchanged());
    LoaderOptions given = refusal_options(on_error);
    given.shuffle = false;
    const auto try_one = [&] {
      try {
        Loader loader(source, pipeline, given);
        const Outcome outcome = outcome_of(loader);
        const Spared test;
        SCOPED_TRACE("allocation " + std::to_string(first_refused) +
                     (in_python ? " with a Python transform" : ""));
        check(outcome);
      } catch (const Exception&) {  // of the constructor
      } catch (const std::bad_alloc&) {
      }
    };
    // Only one allocation can lose a report.
    refuse_each_allocation(0, try_one, style == ReadStyle::kMemory ? 400 : 100);
  }
}

std::vector<int64_t> first_records(int64_t count) {
  std::vector<int64_t> out(static_cast<size_t>(count));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

TEST_P(Refusals, ABadRecordEndsTheRunWithItsErrorAndNoBatchIsShort) {
  each_outcome(GetParam(), OnError::kRaise, [](const Outcome& got) {
    EXPECT_TRUE(got.raised);
    EXPECT_EQ(got.records, first_records(16));  // 20 is in the second batch
  });
}

TEST_P(Refusals, EveryRecordThatIsSkippedIsReported) {
  each_outcome(GetParam(), OnError::kSkip, [](const Outcome& got) {
    EXPECT_TRUE(got.reported.contains(20) && got.reported.contains(50));
    EXPECT_LE(got.reports, 2u + 16u);  // and those that were written together, one of which failed
    EXPECT_EQ(got.reports, got.reported.size());
    std::vector<int64_t> expected = first_records(64);
    std::erase_if(expected, [&](int64_t record) { return got.reported.contains(record); });
    EXPECT_EQ(got.records, expected);
  });
}

TEST_P(Refusals, EverySubstitutedRecordIsReported) {
  each_outcome(GetParam(), OnError::kSubstitute, [](const Outcome& got) {
    EXPECT_TRUE(got.reported.contains(20) && got.reported.contains(50));
    EXPECT_LE(got.reports, 2u + 16u);
    ASSERT_EQ(got.records.size(), 64u);
    for (int64_t position = 0; position < 64; ++position) {
      const int64_t record = got.records[static_cast<size_t>(position)];
      EXPECT_TRUE(record != 20 && record != 50);
      EXPECT_TRUE(record == position || got.reported.contains(position)) << position;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(ReadStyles, Refusals,
                         testing::Values(ReadStyle::kMemory, ReadStyle::kFiles, ReadStyle::kPython),
                         [](const auto& info) {
                           return info.param == ReadStyle::kMemory  ? "Memory"
                                  : info.param == ReadStyle::kFiles ? "Files"
                                                                    : "Python";
                         });

// Records of index % 3 rows, which are the index.
class Rows final : public Source {
 public:
  int64_t size() const override { return 40; }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override { return ReadStyle::kMemory; }
  void read(std::span<const int64_t> indices, const std::vector<bool>&,
            std::span<RecordData> out) const override {
    for (size_t i = 0; i < indices.size(); ++i) {
      RecordData& data = out[i];
      data.index = indices[i];
      data.result = {};
      const int64_t rows = indices[i] % 3;
      data.owned.resize(1);
      data.owned[0].resize(static_cast<size_t>(rows) * 8);
      auto* values = reinterpret_cast<int64_t*>(data.owned[0].data());
      std::fill(values, values + rows, indices[i]);
      data.fields.resize(2);
      data.fields[0] = {.bytes = data.owned[0].bytes(), .shape = {rows}};
      data.fields[1] = {.bytes = {}, .shape = {}, .scalar = indices[i]};
    }
  }
  std::string key(int64_t index) const override { return std::to_string(index); }
  uint64_t fingerprint() const override { return 1; }
  std::string description() const override { return "rows"; }

 private:
  Schema schema_ = {
      {.name = "rows", .kind = FieldKind::kTensor, .dtype = DType::kInt64, .shape = {-1}},
      {.name = "label", .kind = FieldKind::kLabel, .dtype = DType::kInt64}};
};

TEST(RefusedRaggedBatches, AFailedTensorAllocationDoesNotLoseBatches) {
  const auto source = std::make_shared<Rows>();
  for (const Ragged ragged : {Ragged::kList, Ragged::kPad, Ragged::kPacked}) {
    LoaderOptions given = refusal_options(OnError::kRaise);
    given.plan.ragged = ragged;
    int64_t failures = 0;
    Loader whole(source, {}, given);
    const auto expected = epoch_despite_failures(whole, failures);
    ASSERT_EQ(failures, 0);
    refuse_each_allocation(0, [&] {
      try {
        Loader loader(source, {}, given);
        const auto got = epoch_despite_failures(loader, failures);
        const Spared test;
        EXPECT_EQ(got, expected);
      } catch (const Exception& failure) {  // of the constructor
        const Spared test;
        EXPECT_EQ(failure.error().code->kind, ErrorKind::kResource) << failure.what();
      } catch (const std::bad_alloc&) {
        ++failures;
      }
    });
    EXPECT_GT(failures, 0);
  }
}

TEST(RefusedReadAhead, AFailedAllocationReleasesEverything) {
  const auto source = std::make_shared<Numbers>(60, std::set<int64_t>{}, ReadStyle::kPython);
  refuse_each_allocation(3, [&] {
    try {
      ReadAhead ahead(source, {true, true}, size_t{64} << 10);
      ahead.start({[](int64_t sequence) { return sequence; }, 60});
      RecordData data;
      for (int64_t sequence = 0; sequence < 60; ++sequence) {
        try {
          const ReadLoan loan(ahead, ahead.fetch(sequence, sequence, data, /*may_wait=*/true));
          EXPECT_EQ(data.fields[1].scalar, 3 * sequence);
        } catch (const std::bad_alloc&) {
        }
      }
      ahead.stop();
      EXPECT_EQ(ahead.held_bytes(), 0u);
    } catch (const std::bad_alloc&) {
    }
  });
}

// Also on the storage's own thread, where answers arrive.
TEST(RefusedReadAhead, AReadOfRemoteStorageIsNeverLost) {
  MemoryVolume volume("refused");
  PathColumn paths;
  for (int64_t i = 0; i < 40; ++i) {
    paths.paths.push_back(volume.write("a/folder/with/a/long/name/" + std::to_string(i), "bytes"));
  }
  std::vector<Column> columns;
  columns.push_back({.name = "data", .values = std::move(paths), .kind = FieldKind::kBytes});
  const SourcePtr source = records(std::move(columns));
  ASSERT_EQ(source->read_style(), ReadStyle::kLater);
  for (int64_t after : {0, 40}) {
    refuse_each_allocation(after, [&] {
      try {
        ReadAhead ahead(source, {true}, size_t{64} << 10);
        ahead.start({[](int64_t sequence) { return sequence; }, 40});
        RecordData data;
        for (int64_t sequence = 0; sequence < 40; ++sequence) {
          try {
            const ReadLoan loan(ahead, ahead.fetch(sequence, sequence, data, /*may_wait=*/true));
            if (data.result) {
              EXPECT_EQ(data.fields[0].bytes.size(), 5u);
            } else {
              EXPECT_EQ(data.result.error().code->kind, ErrorKind::kResource);
            }
          } catch (const std::bad_alloc&) {
          }
        }
        ahead.stop();
        while (ahead.held_bytes() > 0) std::this_thread::yield();  // pending answers arrive
      } catch (const std::bad_alloc&) {
      }
    });
  }
}

// Threads of the pool remain for the next loader, so each attempt starts without any.
TEST(RefusedThreads, ALoaderWithoutThreadsIsAnErrorAndTheNextOneWorks) {
  const auto source = std::make_shared<Numbers>(100);
  Loader reference(source, {}, options(16, 1));
  const auto expected = epoch_of(reference);
  reference.close();
  for (int64_t at = 1; at <= 4; ++at) {
    shutdown_threads();
    refuse_thread_at = at;
    {
      Loader loader(source, {}, options(16, 4));
      try {
        loader.next();
        ADD_FAILURE() << "a thread was refused";
      } catch (const Exception& failure) {
        EXPECT_EQ(failure.error().code->id, "HR0790");
      }
      EXPECT_EQ(epoch_of(loader), expected);
    }
    Loader next(source, {}, options(16, 4));
    EXPECT_EQ(epoch_of(next), expected);
  }
}

// Busy until it is stopped.
class Busy final : public PoolClient {
 public:
  explicit Busy(int most) : most_(most) {}
  int max_workers() const override { return most_; }
  bool work(Renderer&) override {
    ++inside;
    while (!released) std::this_thread::yield();
    --inside;
    return false;
  }
  std::atomic<int> inside{0};
  std::atomic<bool> released{false};

 private:
  const int most_;
};

// Threads that are no longer needed end after their current work, and are joined by the next
// caller.
TEST(RefusedThreads, AFailureAfterThreadsHaveEndedIsAnErrorNotACrash) {
  shutdown_threads();
  ThreadPool& pool = ThreadPool::workers();
  Busy large(6), one(3), other(3), next(8);
  large.released = next.released = true;
  pool.add(large);
  pool.add(one);
  pool.add(other);
  while (one.inside < 3 || other.inside < 3) std::this_thread::yield();
  pool.remove(large);  // three threads are needed now, and six are working
  one.released = other.released = true;
  while (pool.threads() > 3) std::this_thread::yield();
  refuse_thread_at = 1;
  EXPECT_THROW(pool.add(next), Exception);
  EXPECT_EQ(refuse_thread_at, 0);
  pool.add(next);
  pool.remove(next);
  pool.remove(one);
  pool.remove(other);
  EXPECT_EQ(pool.threads(), 0u);
}

TEST(RefusedThreads, LoadingContinuesWithoutReaderThreads) {
  const auto source = std::make_shared<Numbers>(100, std::set<int64_t>{}, ReadStyle::kPython);
  Loader reference(source, {}, options(16, 2));
  const auto expected = epoch_of(reference);
  Loader loader(source, {}, options(16, 2));
  loader.prepare();
  refuse_thread_at = 1;  // the reader's: the pool has its own
  EXPECT_EQ(epoch_of(loader), expected);
  EXPECT_EQ(refuse_thread_at, 0);
}

}  // namespace
}  // namespace headrace
