// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/record_groups.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>

#include "headrace/base/longer_test_limits.h"
#include "headrace/sources/columns/columns.h"
#include "headrace/storage/memory_files.h"
#include "headrace/storage/read_deadline.h"
#include "headrace/storage/remote/loopback_server_test.h"
#include "headrace/storage/remote/remote_options.h"

namespace headrace {
namespace {

constexpr int64_t kRows = 10, kRowBytes = 100, kGroups = 12;
constexpr uint64_t kGroupBytes = kRows * kRowBytes;

// Groups of ten records of 100 bytes in one file: record i is 100 times its number.
class Grouped {
 public:
  explicit Grouped(uint64_t memory = 1 << 20, int64_t groups = kGroups) {
    std::string bytes;
    for (int64_t i = 0; i < groups * kRows; ++i) bytes.append(kRowBytes, static_cast<char>(i));
    path_ = volume.write("a", bytes);
    RecordGroups made{.files = std::make_shared<const FileSet>(std::vector{path_}),
                      .memory = memory};
    for (int64_t i = 0; i < groups; ++i) {
      made.groups.push_back(
          {.end = (i + 1) * kRows,
           .ranges = {{.offset = static_cast<uint64_t>(i) * kGroupBytes, .bytes = kGroupBytes}},
           .decoded_bytes = kGroupBytes});
    }
    made.schema = {{.name = "x", .kind = FieldKind::kTensor, .shape = Shape{kRowBytes}}};
    made.decode = [this](int64_t, std::vector<Buffer> parts) -> Result<SourcePtr> {
      ++decoded;
      if (refuses) return *refuses;
      const std::shared_ptr<Buffer> memory(new Buffer(std::move(parts.at(0))), [this](Buffer* old) {
        delete old;
        if (when_one_goes) when_one_goes();
      });
      return records({{.name = "x",
                       .values = ArrayColumn{memory->data(), DType::kUInt8, kRows, Shape{kRowBytes},
                                             memory}}});
    };
    source = source_of_groups(std::move(made));
  }

  RecordData read(int64_t index) const {
    RecordData out;
    source->read({&index, 1}, {true}, {&out, 1});
    return out;
  }
  void expect(int64_t index) const {
    const RecordData record = read(index);
    ASSERT_TRUE(record.result) << record.result.error().message();
    EXPECT_EQ(record.index, index);
    ASSERT_EQ(record.fields[0].bytes.size(), kRowBytes);
    EXPECT_EQ(record.fields[0].bytes[kRowBytes - 1], static_cast<uint8_t>(index));
  }
  void wait_for_requests(int64_t count) const {
    while (volume.requests() < count) std::this_thread::yield();
  }

  MemoryVolume volume{"groups"};
  std::atomic<int> decoded = 0;
  std::optional<Error> refuses;
  std::function<void()> when_one_goes;
  SourcePtr source;

 private:
  std::string path_;
};

// What is wrong with the error's code.
std::string code_of(const RecordData& record, std::string_view wanted) {
  const std::string_view code = record.result.error().code->id;
  return code == wanted ? "" : std::string(code);
}

TEST(RecordGroups, each_group_is_requested_and_decoded_once_by_any_number_of_threads) {
  const Grouped groups;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < kGroups * kRows; ++i) groups.expect((i * 7 + t) % (kGroups * kRows));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(groups.decoded, kGroups);
  EXPECT_EQ(groups.volume.requests(), kGroups);
  EXPECT_EQ(groups.volume.bytes_sent(), kGroups * kGroupBytes);
}

TEST(RecordGroups, a_record_outlives_its_group) {
  const Grouped groups(/*memory=*/0);
  const RecordData first = groups.read(3);
  for (int64_t i = kRows; i < kGroups * kRows; i += kRows) groups.expect(i);
  EXPECT_EQ(first.fields[0].bytes[0], 3);
  groups.expect(3);
  EXPECT_EQ(groups.decoded, kGroups + 1) << "it was no longer in memory";
}

TEST(RecordGroups, groups_that_were_read_completely_are_evicted_first) {
  const Grouped groups(5 * kGroupBytes);
  for (int64_t i = 20; i < 30; ++i) groups.expect(i);  // group 2, completely
  for (const int64_t group : {4, 6, 8, 10}) groups.expect(group * kRows);
  groups.expect(21);  // used last, and read completely all the same
  groups.expect(0);
  EXPECT_EQ(groups.decoded, 6);
  for (const int64_t group : {4, 6, 8, 10}) groups.expect(group * kRows + 1);
  EXPECT_EQ(groups.decoded, 6);
}

TEST(RecordGroups, announced_groups_are_requested_ahead_within_the_memory_limit) {
  const Grouped groups(6 * kGroupBytes);
  groups.source->will_read(20, 100, {true});  // groups 2 to 9
  groups.wait_for_requests(6);
  for (int64_t i = 0; i < 80; ++i) groups.expect(20 + (i * 3) % 80);
  EXPECT_GE(groups.volume.requests(), 8);
  EXPECT_GE(groups.volume.most_under_way(), 1);
}

TEST(RecordGroups, the_next_groups_of_a_sequential_order_are_requested_ahead) {
  const Grouped groups;
  groups.expect(0);
  groups.wait_for_requests(kGroups);
  EXPECT_EQ(groups.decoded, 1);
  const Grouped* const unused = &groups;
  for (int64_t i = 0; i < kGroups * kRows; ++i) unused->expect(i);
  EXPECT_EQ(groups.volume.requests(), kGroups);
}

TEST(RecordGroups, a_storage_error_is_retried_and_a_data_error_is_cached) {
  Grouped groups;
  groups.volume.behave(
      {.fault = [](const MemoryRequest&) { return MemoryFault{.error_number = EACCES}; }});
  for (int i = 0; i < 2; ++i) {
    const RecordData record = groups.read(55);
    ASSERT_FALSE(record.result);
    EXPECT_EQ(record.result.error().code->id, "HR0202");
    EXPECT_EQ(record.result.error().where.record, 55);
  }
  EXPECT_EQ(groups.volume.requests(), 2);
  groups.volume.behave({});
  groups.expect(55);
  static const ErrorCode damaged{"HR9990", ErrorKind::kData, "damaged", "A test's."};
  groups.refuses = Error{.code = &damaged, .what = "damaged"};
  EXPECT_FALSE(groups.read(75).result);
  groups.refuses.reset();
  EXPECT_FALSE(groups.read(76).result);
  groups.expect(85);
}

TEST(RecordGroups, a_deadline_ends_the_wait_for_a_group) {
  EXPECT_TRUE(holds_with_longer_limits({0.5, 5, 50}, [](double latency_seconds) -> std::string {
    const Grouped groups;
    const_cast<MemoryVolume&>(groups.volume).behave({.latency_seconds = latency_seconds});
    const ReadDeadline deadline(0.01);
    const RecordData record = groups.read(5);
    return record.result ? "it came in time" : code_of(record, "HR0228");
  }));
}

TEST(RecordGroups, a_group_whose_readers_gave_up_can_be_evicted) {
  EXPECT_TRUE(holds_with_longer_limits({0.2, 2, 20}, [](double latency_seconds) -> std::string {
    const Grouped groups(/*memory=*/0);
    const_cast<MemoryVolume&>(groups.volume).behave({.latency_seconds = latency_seconds});
    for (int64_t group = 0; group < 4; ++group) {
      const ReadDeadline deadline(0.01);
      if (groups.read(group * kRows).result) return "a group came in time";
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(5 * latency_seconds));  // all came
    const_cast<MemoryVolume&>(groups.volume).behave({});
    for (int64_t group = 4; group < 9; ++group) groups.expect(group * kRows);
    groups.expect(0);
    const int64_t requests = groups.volume.requests();
    return requests == 10 ? "" : "group 0 had not made room: " + std::to_string(requests);
  }));
}

TEST(RecordGroups, a_closed_source_cancels_the_requests_of_its_groups) {
  const RemoteOptions before = *remote_options();
  RemoteOptions patient;
  patient.stall_seconds = 600;
  patient.hedge = false;
  set_remote_options(patient);
  std::atomic<bool> hangs{false};
  LoopbackServer server(3'000'000, [&](int) { return LoopbackFault{.hangs = hangs}; });
  RecordGroups made{.files = std::make_shared<const FileSet>(std::vector{server.url()})};
  made.groups = {{.end = kRows, .ranges = {{.offset = 1'000'000, .bytes = 9}}}};
  made.schema = {{.name = "x", .kind = FieldKind::kTensor, .shape = Shape{kRowBytes}}};
  made.decode = [](int64_t, std::vector<Buffer>) -> Result<SourcePtr> { return SourcePtr(); };
  SourcePtr source = source_of_groups(std::move(made));
  hangs = true;
  const int opened = server.requests();
  {
    const ReadDeadline deadline(0.01);
    const int64_t index = 5;
    RecordData record;
    source->read({&index, 1}, {true}, {&record, 1});
    EXPECT_FALSE(record.result);
  }
  while (server.requests() == opened) std::this_thread::yield();
  source.reset();
  while (server.aborted() < 1) std::this_thread::yield();
  set_remote_options(before);
}

TEST(RecordGroups, groups_are_released_without_holding_the_lock) {
  Grouped groups(/*memory=*/0);
  int others = 0;
  groups.when_one_goes = [&] {  // Python's would wait for the GIL, which this thread may hold
    if (++others > 1) return;
    std::thread reader([&] { groups.expect(8 * kRows); });
    reader.join();
  };
  for (int64_t group = 0; group < 8; ++group) groups.expect(group * kRows);
  EXPECT_GE(others, 1);
  groups.when_one_goes = {};
}

TEST(RecordGroups, a_range_beyond_its_file_is_an_error_and_nothing_is_requested) {
  const MemoryVolume volume("short");
  const std::string path = const_cast<MemoryVolume&>(volume).write("a", "abc");
  const FileSet files({path});
  const FileRange ranges[] = {{.offset = 0, .bytes = 2}, {.offset = 2, .bytes = UINT64_MAX}};
  const RangeBytes bytes = read_ranges(files, ranges);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(volume.requests(), 0);
  EXPECT_EQ(read_ranges(files, std::span(ranges).first(1))->at(0).size(), 2u);
}

TEST(RecordGroups, small_groups_share_one_block_of_a_shuffle) {
  const Grouped groups;
  EXPECT_EQ(groups.source->block_ends(), std::vector<int64_t>{kGroups * kRows});
}

}  // namespace
}  // namespace headrace
