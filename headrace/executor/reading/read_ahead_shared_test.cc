// SPDX-License-Identifier: Apache-2.0
// Reading ahead of records that need the same pieces, and of pieces that depend on tables.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "headrace/executor/reading/bytes_test_source.h"
#include "headrace/executor/reading/read_ahead.h"
#include "headrace/sources/labeled_files.h"
#include "headrace/storage/file.h"
#include "headrace/storage/memory_files.h"
#include "headrace/storage/staged_reads.h"

namespace headrace {
namespace {

constexpr uint64_t kGroup = 1000;  // bytes of a piece
constexpr int64_t kAGroup = 4;     // records that need it

// Record i needs the pieces i / kAGroup and the one after that of one file, and is their first
// bytes. Its pieces are known when table i / kATable has been asked for once.
class Overlapping final : public BytesTestSource {
 public:
  Overlapping(MemoryVolume& volume, int64_t records, int64_t a_table = 0)
      : BytesTestSource(records), a_table_(a_table) {
    std::vector<uint8_t> bytes;
    for (int64_t i = 0; i <= records / kAGroup + 1; ++i) {
      bytes.insert(bytes.end(), kGroup, static_cast<uint8_t>(i));
    }
    path_ = volume.write("file", bytes);
    identity_ = *identity_of(path_);
  }
  bool prepare_pieces(int64_t index, const std::vector<bool>&, bool wait) const override {
    if (a_table_ == 0) return true;
    const std::lock_guard lock(mutex_);
    const bool is_new = tables_.insert(index / a_table_).second;
    waits_ += wait && is_new;
    return wait || !is_new;
  }
  void pieces(int64_t index, const std::vector<bool>&, std::vector<FilePiece>& out) const override {
    for (const uint64_t group : groups_of(index)) {
      out.push_back({.path = path_,
                     .offset = group * kGroup,
                     .bytes = kGroup,
                     .known = identity_,
                     .shared = true});
    }
  }
  void read(std::span<const int64_t> indices, const std::vector<bool>&,
            std::span<RecordData> out) const override {
    begin_record(indices[0], 1, 1, out[0]);
    Buffer& bytes = out[0].owned[0];
    bytes.resize(2);
    size_t at = 0;
    for (const uint64_t group : groups_of(indices[0])) {
      if (const auto memory = StagedReads::share(path_, group * kGroup, kGroup, &identity_)) {
        bytes.data()[at++] = memory->data()[0];
        continue;
      }
      ++unstaged_;
      const Result<File> file = File::open(path_, &identity_);
      if (Result<void> read = file->read(group * kGroup, {bytes.data() + at++, 1}); !read) {
        out[0].result = std::move(read);
        return;
      }
    }
    out[0].fields[0].bytes = bytes.bytes();
  }
  int64_t unstaged() const { return unstaged_; }
  int64_t waits() const { return waits_; }

 private:
  static std::vector<uint64_t> groups_of(int64_t index) {
    const auto first = static_cast<uint64_t>(index / kAGroup);
    return {first, first + 1};
  }
  const int64_t a_table_;
  std::string path_;
  FileIdentity identity_;
  mutable std::mutex mutex_;
  mutable std::set<int64_t> tables_;
  mutable std::atomic<int64_t> unstaged_{0}, waits_{0};
};

ReadOrder in_order(int64_t count) {
  return {.index_of = [](int64_t sequence) { return sequence; }, .count = count};
}

void fetch_overlapping(ReadAhead& ahead, int64_t count, int threads) {
  std::atomic<int64_t> next{0};
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&] {
      RecordData data;
      for (int64_t i; (i = next++) < count;) {
        const size_t lent = ahead.fetch(i, i, data, /*may_wait=*/true);
        ASSERT_TRUE(data.result) << data.result.error().message();
        EXPECT_EQ(data.fields[0].bytes[0], static_cast<uint8_t>(i / kAGroup));
        EXPECT_EQ(data.fields[0].bytes[1], static_cast<uint8_t>(i / kAGroup + 1));
        ahead.give_back(lent);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
}

TEST(ReadAheadOfSharedPieces, RequestsEachByteOnce) {
  MemoryVolume volume("shared", {.latency_seconds = 0.002});
  const auto source = std::make_shared<Overlapping>(volume, 800);
  const uint64_t before = volume.bytes_sent();
  ReadAhead ahead(source, {true}, size_t{4} << 20);
  ahead.start(in_order(800));
  fetch_overlapping(ahead, 800, 2);
  EXPECT_EQ(volume.bytes_sent() - before, 201 * kGroup);
  EXPECT_EQ(source->unstaged(), 0);
  EXPECT_LE(volume.requests(), 40) << "neighbors are one request";
  EXPECT_EQ(ahead.held_bytes(), 0u);
}

TEST(ReadAheadOfSharedPieces, SurvivesFailuresAndRecordsThatAreLeftOut) {
  MemoryVolume volume("shared",
                      {.latency_seconds = 0.001, .fault = [](const MemoryRequest& request) {
                         return MemoryFault{.error_number = request.number % 5 == 2 ? EACCES : 0};
                       }});
  const auto source = std::make_shared<Overlapping>(volume, 400);
  ReadAhead ahead(source, {true}, size_t{1} << 20);
  for (int epoch = 0; epoch < 2; ++epoch) {
    ahead.start(in_order(400));
    RecordData data;
    for (int64_t i = 0; i < 400; ++i) {
      if (i % 7 == 3) {
        ahead.skip(i, 2);
        ++i;
        continue;
      }
      ahead.give_back(ahead.fetch(i, i, data, true));
      if (!data.result) {
        EXPECT_EQ(data.result.error().code->id, "HR0202");
      }
    }
    ahead.stop();
    EXPECT_EQ(ahead.held_bytes(), 0u);
  }
}

// Record i needs two pieces with the same beginning: the first kGroup * (i + 1) bytes of a file,
// and what record i + 1 needs as its first piece. So do two fields that show frames of the same
// video.
class Growing final : public BytesTestSource {
 public:
  Growing(MemoryVolume& volume, int64_t records) : BytesTestSource(records) {
    path_ = volume.write("file", std::vector<uint8_t>(kGroup * static_cast<size_t>(records + 1)));
    identity_ = *identity_of(path_);
  }
  void pieces(int64_t index, const std::vector<bool>&, std::vector<FilePiece>& out) const override {
    for (const int64_t groups : {index + 1, index + 2}) {
      out.push_back({.path = path_,
                     .offset = 0,
                     .bytes = kGroup * static_cast<uint64_t>(groups),
                     .known = identity_,
                     .shared = true});
    }
  }
  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override {
    begin_record(indices[0], 1, 1, out[0]);
    std::vector<FilePiece> needed;
    pieces(indices[0], wanted, needed);
    for (const FilePiece& piece : needed) {
      unstaged_ += !StagedReads::share(path_, piece.offset, piece.bytes, &identity_);
    }
  }
  int64_t unstaged() const { return unstaged_; }

 private:
  std::string path_;
  FileIdentity identity_;
  mutable std::atomic<int64_t> unstaged_{0};
};

TEST(ReadAheadOfSharedPieces, ThatBeginTogetherInOneRecordAllArrive) {
  MemoryVolume volume("growing");
  const auto source = std::make_shared<Growing>(volume, 20);
  // Without a deadline the test would hang if a piece is never requested.
  ReadAhead ahead(source, {true}, size_t{4} << 20, SIZE_MAX, {}, /*record_timeout=*/60);
  ahead.start(in_order(20));
  RecordData data;
  for (int64_t i = 0; i < 20; ++i) {
    ahead.give_back(ahead.fetch(i, i, data, true));
    ASSERT_TRUE(data.result) << data.result.error().message();
  }
  EXPECT_EQ(source->unstaged(), 0);
  EXPECT_EQ(ahead.held_bytes(), 0u);
}

TEST(ReadAheadOfUnknownPieces, GoesOnWhenTheyAreKnown) {
  MemoryVolume volume("tables", {.latency_seconds = 0.001});
  const auto source = std::make_shared<Overlapping>(volume, 800, /*a_table=*/16);
  ReadAhead ahead(source, {true}, size_t{4} << 20);
  ahead.start(in_order(800));
  fetch_overlapping(ahead, 800, 1);
  EXPECT_EQ(source->unstaged(), 0);
  EXPECT_EQ(source->waits(), 0) << "tables are asked for before they are needed";
}

}  // namespace
}  // namespace headrace
