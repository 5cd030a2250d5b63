// SPDX-License-Identifier: Apache-2.0
// Reading ahead of an asynchronous storage.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "headrace/base/longer_test_limits.h"
#include "headrace/executor/reading/read_ahead.h"
#include "headrace/sampling/sampler.h"
#include "headrace/sources/columns/columns.h"
#include "headrace/storage/memory_files.h"

namespace headrace {
namespace {

constexpr size_t kShare = size_t{4} << 20;

std::vector<uint8_t> content_of(int64_t record, size_t bytes) {
  std::vector<uint8_t> out(bytes, static_cast<uint8_t>(record));
  std::memcpy(out.data(), &record, 8);
  return out;
}

// Files of a volume, one a record.
SourcePtr files_in(MemoryVolume& volume, int64_t count, size_t bytes = 1000) {
  PathColumn paths;
  for (int64_t i = 0; i < count; ++i) {
    paths.paths.push_back(volume.write(std::to_string(i), content_of(i, bytes)));
  }
  std::vector<Column> columns;
  columns.push_back({.name = "data", .values = std::move(paths), .kind = FieldKind::kBytes});
  return records(std::move(columns));
}

int64_t shuffled(int64_t sequence, int64_t count) { return (sequence * 7 + 3) % count; }

// Fetches 0..count-1 from several threads, as workers claim them, and checks what comes. Returns
// the most that was held at once.
size_t fetch_all(ReadAhead& ahead, int64_t count, int threads = 2) {
  std::atomic<int64_t> next{0};
  std::atomic<size_t> most{0};
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&] {
      RecordData data;
      for (int64_t sequence; (sequence = next++) < count;) {
        const int64_t index = shuffled(sequence, count);
        const size_t lent = ahead.fetch(sequence, index, data, /*may_wait=*/true);
        size_t held = ahead.held_bytes();
        for (size_t seen = most; held > seen && !most.compare_exchange_weak(seen, held);) {
        }
        ASSERT_TRUE(data.result) << data.result.error().message();
        int64_t got = -1;
        std::memcpy(&got, data.fields[0].bytes.data(), 8);
        ahead.give_back(lent);
        ASSERT_EQ(got, index);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  return most;
}

ReadOrder order_of(int64_t count, int64_t beyond = 0, bool goes_on = false) {
  return {.index_of = [count](int64_t sequence) { return shuffled(sequence % count, count); },
          .count = count,
          .beyond = beyond,
          .goes_on = goes_on};
}

// What is wrong if a volume never had this many requests at once.
std::string few_under_way(const MemoryVolume& volume, int64_t least) {
  const int64_t most = volume.most_under_way();
  return most >= least ? "" : "only " + std::to_string(most) + " requests at once";
}

size_t threads_of_this_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

TEST(ReadAheadAsync, ManyReadsAreInFlightWithoutWaitingThreads) {
  EXPECT_TRUE(holds_with_longer_limits({0.02, 0.1, 0.5}, [](double latency_seconds) {
    MemoryVolume volume("ahead", {.latency_seconds = latency_seconds});
    const SourcePtr source = files_in(volume, 2000);
    EXPECT_EQ(source->read_style(), ReadStyle::kLater);
    ReadAhead ahead(source, {true}, kShare);
    ahead.start(order_of(2000));
    const size_t threads = threads_of_this_process();
    fetch_all(ahead, 2000, 1);
    EXPECT_EQ(volume.requests(), 2000);
    EXPECT_LE(threads_of_this_process(), threads + 1) << "the volume's own";
    EXPECT_EQ(ahead.held_bytes(), 0u);
    return few_under_way(volume, 64);
  }));
}

TEST(ReadAheadAsync, TemporaryFaultsAreRetried) {
  MemoryVolume volume("faulty", {.latency_seconds = 0.001,
                                 .fault = [](const MemoryRequest& request) -> MemoryFault {
                                   if (request.number % 50 == 7) return {.most = 300};
                                   if (request.number == 100) return {.error_number = ECONNRESET};
                                   if (request.number == 200) return {.extra_seconds = 0.2};
                                   return {};
                                 }});
  ReadAhead ahead(files_in(volume, 500), {true}, kShare);
  for (int epoch = 0; epoch < 2; ++epoch) {
    ahead.start(order_of(500));
    fetch_all(ahead, 500, 4);
    ahead.stop();
    EXPECT_EQ(ahead.held_bytes(), 0u);
  }
}

TEST(ReadAheadAsync, APermanentFailureIsThatRecordsError) {
  MemoryVolume volume("broken", {.fault = [](const MemoryRequest& request) {
                        return MemoryFault{.error_number = request.path == "17" ? EACCES : 0};
                      }});
  ReadAhead ahead(files_in(volume, 50), {true}, kShare);
  ahead.start({[](int64_t sequence) { return sequence; }, 50});
  RecordData data;
  for (int64_t i = 0; i < 50; ++i) {
    ahead.give_back(ahead.fetch(i, i, data, true));
    EXPECT_EQ(data.result.has_value(), i != 17);
    if (data.result) continue;
    EXPECT_EQ(data.result.error().code->id, "HR0202");
    EXPECT_EQ(data.result.error().where.record, 17);
  }
  EXPECT_EQ(ahead.held_bytes(), 0u);
}

// Record 17 takes longer than its limit, read ahead and on its own. Returns what is wrong.
std::string drop_a_late_record(double limit, const std::string& seconds) {
  MemoryVolume volume("late", {.fault = [limit](const MemoryRequest& request) {
                        return MemoryFault{.extra_seconds = request.path == "17" ? 5 * limit : 0};
                      }});
  const SourcePtr source = files_in(volume, 50);
  ReadAhead ahead(source, {true}, kShare, SIZE_MAX, {}, /*record_timeout=*/limit);
  ahead.start({[](int64_t sequence) { return sequence; }, 50});
  RecordData data;
  const auto is_too_late = [&]() -> bool {
    if (data.result) return false;
    const Error& error = data.result.error();
    EXPECT_EQ(error.code->id, "HR0228");
    EXPECT_TRUE(is_bad_record(error));
    EXPECT_EQ(error.where.file, volume.root() + "/17");
    EXPECT_EQ(error.where.record, 17);
    EXPECT_NE(error.message().find(seconds), std::string::npos);
    EXPECT_NE(error.message().find("record_timeout="), std::string::npos);
    return true;
  };
  for (int64_t i = 0; i < 50; ++i) {
    ahead.give_back(ahead.fetch(i, i, data, true));
    if (i == 17) {
      if (!is_too_late()) return "record 17 came in time";
    } else {
      if (!data.result) return data.result.error().message();
      EXPECT_EQ(data.fields[0].bytes[0], i);
    }
  }
  ahead.read_alone(17, data);
  if (!is_too_late()) return "record 17 came in time";
  ahead.read_alone(18, data);
  if (!data.result) return data.result.error().message();
  while (ahead.held_bytes() > 0) std::this_thread::yield();  // until what came late is dropped
  ahead.stop();
  ReadAhead patient(source, {true}, kShare);
  patient.read_alone(17, data);
  return data.result ? "" : data.result.error().message();
}

TEST(ReadAheadAsync, ALateRecordIsThatRecordsErrorAndIsDropped) {
  EXPECT_TRUE(holds_with_longer_limits({0.1, 1, 10}, [](double limit) {
    return drop_a_late_record(limit, limit < 1 ? "0.1 s" : limit < 10 ? "1 s" : "10 s");
  }));
}

TEST(ReadAheadAsync, NeighborsInAFileAreOneRead) {
  constexpr int64_t kRecords = 4000;
  MemoryVolume volume("neighbors");
  constexpr size_t kBytes = 500;
  std::vector<uint8_t> all;
  for (int64_t i = 0; i < kRecords; ++i) {
    const std::vector<uint8_t> one = content_of(i, kBytes);
    all.insert(all.end(), one.begin(), one.end());
  }
  FileArray array{.parts = {}, .shape = {static_cast<int64_t>(kBytes)}};
  Result<File> file = File::open(volume.write("array", all));
  ASSERT_TRUE(file);
  array.parts.push_back(
      {.file = std::make_shared<const File>(std::move(*file)), .count = kRecords});
  std::vector<Column> columns;
  columns.push_back({.name = "data", .values = std::move(array)});
  const SourcePtr source = records(std::move(columns));
  EXPECT_TRUE(holds_with_longer_limits({0.002, 0.02, 0.2}, [&](double latency_seconds) {
    volume.behave({.latency_seconds = latency_seconds});
    ReadAhead ahead(source, {true}, kShare);
    const int64_t before = volume.requests();
    ahead.start({[](int64_t sequence) { return sequence; }, kRecords});
    RecordData data;
    for (int64_t i = 0; i < kRecords; ++i) {
      ahead.give_back(ahead.fetch(i, i, data, true));
      int64_t got = -1;
      std::memcpy(&got, data.fields[0].bytes.data(), 8);
      EXPECT_EQ(got, i);
    }
    EXPECT_EQ(ahead.held_bytes(), 0u);
    const int64_t requests = volume.requests() - before;
    return requests <= kRecords / 4 ? std::string() : std::to_string(requests) + " requests";
  }));
}

// Blocks of 100 neighbors, of which an order mixes eight: each is one request, though hardly two
// of its records follow each other.
TEST(ReadAheadAsync, ABlockOfABlockShuffleIsOneRequest) {
  constexpr int64_t kRecords = 4000, kBlock = 100, kMixed = 8;
  constexpr size_t kBytes = 4000;
  std::vector<uint8_t> all;
  for (int64_t i = 0; i < kRecords; ++i) {
    const std::vector<uint8_t> one = content_of(i, kBytes);
    all.insert(all.end(), one.begin(), one.end());
  }
  MemoryVolume volume("mixed", {.latency_seconds = 0.002});
  FileArray array{.parts = {}, .shape = {static_cast<int64_t>(kBytes)}};
  Result<File> file = File::open(volume.write("array", all));
  ASSERT_TRUE(file);
  array.parts.push_back(
      {.file = std::make_shared<const File>(std::move(*file)), .count = kRecords});
  std::vector<Column> columns;
  columns.push_back({.name = "data", .values = std::move(array)});
  const SourcePtr source = records(std::move(columns));
  std::vector<int64_t> ends;
  for (int64_t end = kBlock; end <= kRecords; end += kBlock) ends.push_back(end);
  const SamplerPtr order = shuffled_blocks(ends, kMixed);
  const auto index_of = [&](int64_t sequence) {
    return order->index(3, static_cast<uint64_t>(sequence / kRecords), sequence % kRecords);
  };
  // Room for two times what is mixed, and the half for workers.
  constexpr size_t kRoom = 4 * kMixed * kBlock * kBytes;
  ReadAhead ahead(source, {true}, kRoom);
  const auto requests_of = [&](bool goes_on) {
    const int64_t before = volume.requests();
    ahead.start({.index_of = index_of,
                 .count = kRecords,
                 .goes_on = goes_on,
                 .spread = kMixed * kBlock,
                 .at_once = 32});
    RecordData data;
    size_t most = 0;
    for (int64_t i = 0; i < kRecords; ++i) {
      ahead.give_back(ahead.fetch(i, index_of(i), data, true));
      most = std::max(most, ahead.held_bytes());
      int64_t got = -1;
      std::memcpy(&got, data.fields[0].bytes.data(), 8);
      EXPECT_EQ(got, index_of(i));
    }
    EXPECT_LE(most, kRoom);
    EXPECT_EQ(ahead.held_bytes(), 0u);
    return volume.requests() - before;
  };
  EXPECT_LE(requests_of(false), kRecords / kBlock + 3 * 32) << "and those of the first batch";
  const int64_t requests = requests_of(true);
  EXPECT_LE(requests, kRecords / kBlock + 16);
  EXPECT_LE(ahead.counts().requests, volume.requests()) << "which has those of opening, too";
  EXPECT_GE(ahead.counts().bytes, 2 * all.size());
}

TEST(ReadAheadAsync, ARecordThatIsDrawnTwiceIsDeliveredTwice) {
  MemoryVolume volume("twice", {.latency_seconds = 0.002});
  constexpr size_t kBytes = 500;
  std::vector<uint8_t> all;
  for (int64_t i = 0; i < 100; ++i) {
    const std::vector<uint8_t> one = content_of(i, kBytes);
    all.insert(all.end(), one.begin(), one.end());
  }
  FileArray array{.parts = {}, .shape = {static_cast<int64_t>(kBytes)}};
  Result<File> file = File::open(volume.write("array", all));
  ASSERT_TRUE(file);
  array.parts.push_back({.file = std::make_shared<const File>(std::move(*file)), .count = 100});
  std::vector<Column> columns;
  columns.push_back({.name = "data", .values = std::move(array)});
  ReadAhead ahead(records(std::move(columns)), {true}, kShare);
  const auto index_of = [](int64_t sequence) { return sequence * sequence % 100; };
  ahead.start({.index_of = index_of, .count = 100});
  RecordData data;
  for (int64_t i = 0; i < 100; ++i) {
    ahead.give_back(ahead.fetch(i, index_of(i), data, true));
    int64_t got = -1;
    std::memcpy(&got, data.fields[0].bytes.data(), 8);
    EXPECT_EQ(got, index_of(i));
  }
  EXPECT_EQ(ahead.held_bytes(), 0u);
}

TEST(ReadAheadAsync, AContinuingStreamReadsNothingTwice) {
  MemoryVolume volume("goes_on", {.latency_seconds = 0.002});
  ReadAhead ahead(files_in(volume, 300), {true}, kShare);
  ahead.start(order_of(300, 300));
  fetch_all(ahead, 300, 1);
  const int64_t begun = volume.requests();
  EXPECT_GE(begun, 300 + ReadDepth::kMin / 2) << "the next stream's first reads are under way";
  EXPECT_GT(ahead.held_bytes(), 0u);
  ahead.stop();
  EXPECT_GT(ahead.held_bytes(), 0u);
  ahead.start(order_of(300, 0, /*goes_on=*/true));
  fetch_all(ahead, 300, 2);
  EXPECT_EQ(volume.requests(), 600);
  EXPECT_EQ(ahead.held_bytes(), 0u);
}

TEST(ReadAheadAsync, AnotherStreamGetsItsOwnRecords) {
  MemoryVolume volume("another", {.latency_seconds = 0.002});
  ReadAhead ahead(files_in(volume, 300), {true}, kShare);
  ahead.start(order_of(300, 300));
  fetch_all(ahead, 300, 1);
  ahead.stop();
  ahead.start({[](int64_t sequence) { return 299 - sequence; }, 300});
  RecordData data;
  for (int64_t i = 0; i < 300; ++i) {
    ahead.give_back(ahead.fetch(i, 299 - i, data, true));
    int64_t got = -1;
    std::memcpy(&got, data.fields[0].bytes.data(), 8);
    ASSERT_EQ(got, 299 - i);
  }
  ahead.stop();
  while (ahead.held_bytes() > 0) std::this_thread::yield();  // what was on its way has arrived
}

TEST(ReadAheadAsync, StaysWithinItsShareOfMemory) {
  EXPECT_TRUE(holds_with_longer_limits({0.01, 0.1, 1}, [](double latency_seconds) {
    MemoryVolume volume("share", {.latency_seconds = latency_seconds});
    constexpr size_t kBytes = 40'000;
    ReadAhead ahead(files_in(volume, 600, kBytes), {true}, kShare);
    ahead.start(order_of(600));
    const size_t most = fetch_all(ahead, 600, 2);
    EXPECT_LE(most, kShare + 4 * kBytes) << "and what the workers are given while they read it";
    return most >= kShare / 4 ? std::string() : "only " + std::to_string(most) + " bytes";
  }));
}

TEST(ReadAheadAsync, AFetchFarAheadStaysWithinTheShare) {
  MemoryVolume volume("far", {.latency_seconds = 0.002});
  constexpr size_t kBytes = 100'000;
  const SourcePtr source = files_in(volume, 400, kBytes);
  ReadAhead ahead(source, {true}, size_t{1} << 20);  // ten records
  ahead.start({[](int64_t sequence) { return sequence; }, 400});
  RecordData data;
  size_t most = 0;
  const auto fetch = [&](int64_t sequence) {
    const size_t lent = ahead.fetch(sequence, sequence, data, true);
    most = std::max(most, ahead.held_bytes());
    int64_t got = -1;
    std::memcpy(&got, data.fields[0].bytes.data(), 8);
    EXPECT_EQ(got, sequence);
    ahead.give_back(lent);
  };
  for (int64_t i = 0; i < 40; ++i) fetch(i);             // it knows their size now
  for (int64_t begin = 40; begin < 400; begin += 120) {  // three workers with runs of forty
    for (int64_t i = 0; i < 40; ++i) {
      for (int64_t worker = 2; worker >= 0; --worker) fetch(begin + worker * 40 + i);
    }
  }
  EXPECT_LE(most, (size_t{1} << 20) + 4 * kBytes);
  EXPECT_LE(volume.requests(), 400 + 16) << "only before their size was known any was read twice";
  EXPECT_EQ(ahead.held_bytes(), 0u);
}

TEST(ReadAheadAsync, OneHugeRecordDoesNotThrottleTheSmallOnesAfterIt) {
  EXPECT_TRUE(holds_with_longer_limits({0.01, 0.1, 1}, [](double latency_seconds) {
    MemoryVolume volume("giant", {.latency_seconds = latency_seconds});
    const SourcePtr source = files_in(volume, 1000, 20'000);
    volume.write("500", content_of(500, size_t{6} << 20));  // more than the share
    ReadAhead ahead(source, {true}, kShare);
    ahead.start({[](int64_t sequence) { return sequence; }, 1000});
    RecordData data, giant, other;
    size_t lent = 0;
    const size_t of_another_worker = ahead.fetch(0, 0, other, true);
    for (int64_t i = 1; i < 1000; ++i) {
      RecordData& into = i == 500 ? giant : data;
      const size_t bytes = ahead.fetch(i, i, into, true);
      EXPECT_TRUE(into.result);
      if (i == 500) {
        EXPECT_EQ(giant.fields[0].bytes.size(), size_t{6} << 20);
        lent = bytes;  // it is decoded for long
      } else {
        ahead.give_back(bytes);
      }
    }
    EXPECT_EQ(lent, ahead.counted(size_t{6} << 20));
    ahead.give_back(lent);
    ahead.give_back(of_another_worker);
    EXPECT_EQ(ahead.held_bytes(), 0u);
    return few_under_way(volume, 32);
  }));
}

TEST(ReadAheadAsync, AWaitingReadIsNotOvertakenByOneOfTheSameRecord) {
  constexpr size_t kBytes = 100'000;
  MemoryVolume volume("overtaken");
  const SourcePtr source = files_in(volume, 32, kBytes);
  for (int round = 0; round < 50; ++round) {
    ReadAhead ahead(source, {true}, 10 * kBytes + kBytes / 2);
    ahead.start({[](int64_t sequence) { return sequence; }, 32});
    RecordData data;
    std::vector<size_t> lent;
    for (int64_t i = 0; i < 20; ++i) ahead.give_back(ahead.fetch(i, i, data));
    for (int64_t i = 20; i < 30; ++i) lent.push_back(ahead.fetch(i, i, data));
    std::atomic<bool> waits{false};
    RecordData last;
    std::thread worker([&] {
      waits = true;
      ahead.give_back(ahead.fetch(31, 31, last, /*may_wait=*/true));
    });
    while (!waits) std::this_thread::yield();
    for (int i = 0; i < 10; ++i) std::this_thread::yield();
    // Room for reads of the next two, but none for the record that is waited for.
    for (size_t i = 0; i < 3; ++i) ahead.give_back(lent[i]);
    lent.push_back(ahead.fetch(30, 30, data));
    for (size_t i = 3; i < lent.size(); ++i) ahead.give_back(lent[i]);
    worker.join();
    ASSERT_TRUE(last.result);
    ASSERT_EQ(last.fields.size(), 1u);
    EXPECT_TRUE(std::ranges::equal(last.fields[0].bytes, content_of(31, kBytes)));
    ahead.stop();
    while (ahead.held_bytes() > 0) std::this_thread::yield();  // what was on its way has arrived
  }
}

TEST(ReadAheadAsync, MayBeDestroyedWithReadsInFlight) {
  MemoryVolume volume("leaving", {.latency_seconds = 0.05});
  SourcePtr source = files_in(volume, 300);
  {
    ReadAhead ahead(std::move(source), {true}, kShare);
    ahead.start(order_of(300));
    EXPECT_GT(volume.requests(), 0);
  }
  volume.remove("1");
}

}  // namespace
}  // namespace headrace
