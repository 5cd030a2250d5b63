// SPDX-License-Identifier: Apache-2.0
// Reading ahead of joins, whose sides may be in different storages.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/executor/reading/read_ahead.h"
#include "headrace/sources/columns/columns.h"
#include "headrace/sources/combined/combined.h"
#include "headrace/sources/source_around.h"
#include "headrace/sources/source_test_reads.h"
#include "headrace/storage/memory_files.h"
#include "headrace/storage/read_deadline.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace read_ahead_join_test {
namespace {

constexpr int64_t kRecords = 64;

std::string content_of(const std::string& field, int64_t record) {
  return field + " " + std::to_string(record) + std::string(size_t(record * 7 % 13) * 50, '.');
}

// A file of one field per record.
template <class Write>
SourcePtr files(const std::string& field, const Write& write) {
  PathColumn column;
  for (int64_t i = 0; i < kRecords; ++i) {
    column.paths.push_back(write(field + std::to_string(i), content_of(field, i)));
  }
  return records({{field, std::move(column), FieldKind::kBytes}});
}
SourcePtr remote(MemoryVolume& volume, const std::string& field) {
  return files(field, [&](const std::string& name, const std::string& content) {
    return volume.write(name, std::string_view(content));
  });
}
SourcePtr local(const TemporaryFolder& folder, const std::string& field) {
  return files(field, [&](const std::string& name, const std::string& content) {
    return folder.write(name, content);
  });
}
SourcePtr paired(const SourcePtr& left, const SourcePtr& right) {
  return join(left, right, {.on = "position"});
}

// Read like a dataset in Python: many records by one call, on one thread.
class LikePython final : public SourceAround {
 public:
  using SourceAround::SourceAround;
  ReadStyle read_style() const override { return ReadStyle::kPython; }
};

void expect(const Source& source, int64_t index, const RecordData& record) {
  ASSERT_TRUE(record.result) << record.result.error().message();
  for (size_t field = 0; field < source.schema().size(); ++field) {
    EXPECT_EQ(text_of(record.fields[field]), content_of(source.schema()[field].name, index));
  }
}

TEST(ReadAheadOfJoins, EveryFieldIsThatOfItsRecord) {
  MemoryVolume volume("joins", {.latency_seconds = 0.002});
  const TemporaryFolder folder;
  const SourcePtr a = remote(volume, "a"), b = local(folder, "b"), c = remote(volume, "c"),
                  d = local(folder, "d"), python = std::make_shared<LikePython>(d);
  for (const SourcePtr& source :
       {paired(paired(paired(a, b), c), d), paired(a, paired(b, paired(c, d))),
        paired(paired(a, b), paired(c, d)), paired(paired(paired(b, python), a), c),
        paired(b, paired(a, paired(python, c)))}) {
    ReadAhead ahead(source, std::vector<bool>(4, true), size_t{1} << 20);
    for (int epoch = 0; epoch < 3; ++epoch) {
      const auto index_of = [](int64_t sequence) { return (sequence * 7 + 3) % kRecords; };
      ahead.start({.index_of = index_of, .count = kRecords});
      std::atomic<int64_t> next{0};
      std::vector<std::thread> workers;
      for (int t = 0; t < 2; ++t) {
        workers.emplace_back([&] {
          RecordData record;  // its memory is used again
          for (int64_t sequence; (sequence = next++) < kRecords;) {
            const int64_t index = index_of(sequence);
            const size_t lent = ahead.fetch(sequence, index, record, /*may_wait=*/true);
            expect(*source, index, record);
            ahead.take_back(record);
            ahead.give_back(lent);
          }
        });
      }
      for (std::thread& worker : workers) worker.join();
      ahead.stop();
      EXPECT_EQ(ahead.held_bytes(), 0u);
    }
  }
}

// The answers to these records' requests never come.
MemoryBehavior stalled_at(std::vector<std::string> paths) {
  constexpr double kNever = 1e6;
  return {.fault = [paths = std::move(paths)](const MemoryRequest& request) {
    const bool stalls = paths.empty() || std::ranges::count(paths, request.path) > 0;
    return MemoryFault{.extra_seconds = stalls ? kNever : 0};
  }};
}

TEST(ReadAheadOfJoins, ALateRecordIsTheOnlyBadOneOfThoseReadByOneCall) {
  MemoryVolume volume("late_partner", stalled_at({"far5"}));
  const TemporaryFolder folder;
  const SourcePtr source =
      paired(std::make_shared<LikePython>(local(folder, "near")), remote(volume, "far"));
  ASSERT_EQ(source->read_style(), ReadStyle::kPython);
  ReadAhead ahead(source, {true, true}, size_t{1} << 20, SIZE_MAX, {}, /*record_timeout=*/1);
  ahead.start({[](int64_t sequence) { return sequence; }, kRecords});
  RecordData record;
  for (int64_t i = 0; i < kRecords; ++i) {
    ahead.give_back(ahead.fetch(i, i, record, /*may_wait=*/true));
    if (i != 5) {
      expect(*source, i, record);
      continue;
    }
    ASSERT_FALSE(record.result);
    EXPECT_EQ(record.result.error().code->id, "HR0228");
    EXPECT_EQ(record.result.error().where.record, 5);
  }
}

// One that waits, as a worker does, until its reads are stopped.
class Worker {
 public:
  Worker(ReadAhead& ahead, int64_t sequence)
      : thread_([this, &ahead, sequence] {
          const StoppableReads stoppable(stopped_);
          RecordData record;
          EXPECT_EQ(ahead.fetch(sequence, sequence, record, /*may_wait=*/true), 0u);
          EXPECT_FALSE(record.result);
        }) {}
  void stop_reads() { stopped_ = true; }
  void join() { thread_.join(); }

 private:
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

void wait_for_request(const MemoryVolume& volume) {
  while (volume.requests() == 0) std::this_thread::yield();
}

// Once the storage answers again, the next stream has all records.
void expect_next_stream(ReadAhead& ahead, MemoryVolume& volume, const Source& source) {
  ahead.stop();
  volume.behave({});
  ahead.start({[](int64_t sequence) { return sequence; }, kRecords});
  RecordData record;
  for (int64_t i = 0; i < kRecords; ++i) {
    ahead.give_back(ahead.fetch(i, i, record, /*may_wait=*/true));
    expect(source, i, record);
  }
}

TEST(StoppedReads, AStoppedStreamWaitsForNoRequest) {
  MemoryVolume volume("stalled", stalled_at({}));
  const SourcePtr source = remote(volume, "far");
  ReadAhead ahead(source, {true}, size_t{1} << 20);
  ahead.start({[](int64_t sequence) { return sequence; }, kRecords});
  Worker first(ahead, 0), second(ahead, 1);
  wait_for_request(volume);
  for (Worker* worker : {&first, &second}) worker->stop_reads();
  ahead.abandon();
  for (Worker* worker : {&first, &second}) worker->join();
  expect_next_stream(ahead, volume, *source);
}

TEST(StoppedReads, AReaderOfAStoppedStreamWaitsForNoRequest) {
  MemoryVolume volume("stalled_partner", stalled_at({}));
  const TemporaryFolder folder;
  const SourcePtr source =
      paired(std::make_shared<LikePython>(local(folder, "near")), remote(volume, "far"));
  ReadAhead ahead(source, {true, true}, size_t{1} << 20);
  ahead.start({[](int64_t sequence) { return sequence; }, kRecords});
  Worker worker(ahead, 0);
  wait_for_request(volume);
  worker.stop_reads();
  ahead.abandon();
  worker.join();
  expect_next_stream(ahead, volume, *source);
}

TEST(StoppedReads, RequestsOfAnotherStreamAreNoLongerNeeded) {
  std::vector<std::stop_token> seen;
  Mutex mutex;
  MemoryBehavior behavior = stalled_at({});
  const auto stalls = behavior.fault;
  behavior.fault = [&](const MemoryRequest& request) {
    MutexLock lock(mutex);
    seen.push_back(request.unneeded);
    return stalls(request);
  };
  MemoryVolume volume("unneeded", behavior);
  ReadAhead ahead(remote(volume, "far"), {true}, size_t{1} << 20);
  const auto are_stopped = [&] {
    MutexLock lock(mutex);
    return std::ranges::all_of(seen, [](const auto& token) { return token.stop_requested(); });
  };
  ahead.start({.index_of = [](int64_t sequence) { return sequence % kRecords; },
               .count = 1,
               .beyond = kRecords});
  while (volume.requests() < 2) std::this_thread::yield();
  ahead.stop();
  ahead.start(
      {.index_of = [](int64_t sequence) { return sequence; }, .count = kRecords, .goes_on = true});
  EXPECT_FALSE(are_stopped()) << "records of the stream that goes on";
  ahead.stop();
  volume.behave({});
  ahead.start({[](int64_t sequence) { return sequence; }, kRecords});
  EXPECT_TRUE(are_stopped());
}

}  // namespace
}  // namespace read_ahead_join_test
}  // namespace headrace
