// SPDX-License-Identifier: Apache-2.0
// Requests which no record needs any more are canceled: the server sees their connections end.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "headrace/executor/reading/bytes_test_source.h"
#include "headrace/executor/reading/read_ahead.h"
#include "headrace/sources/labeled_files.h"
#include "headrace/storage/file.h"
#include "headrace/storage/remote/loopback_server_test.h"
#include "headrace/storage/remote/remote_options.h"

namespace headrace {
namespace {

constexpr uint64_t kRecord = 1000, kSpacing = 300'000;  // too far apart to be one request
constexpr int64_t kRecords = 30;

// Not at the beginning, which is inspected.
uint64_t offset_of(int64_t record) { return static_cast<uint64_t>(record + 1) * kSpacing; }

// Record i is kRecord bytes of one file.
class Spaced final : public BytesTestSource {
 public:
  explicit Spaced(std::string path)
      : BytesTestSource(kRecords), path_(std::move(path)), identity_(*identity_of(path_)) {}
  void pieces(int64_t index, const std::vector<bool>&, std::vector<FilePiece>& out) const override {
    out.push_back(
        {.path = path_, .offset = offset_of(index), .bytes = kRecord, .known = identity_});
  }
  void read(std::span<const int64_t> indices, const std::vector<bool>&,
            std::span<RecordData> out) const override {
    begin_record(indices[0], 1, 1, out[0]);
    Buffer& bytes = out[0].owned[0];
    bytes.resize(kRecord);
    const Result<File> file = File::open(path_, &identity_);
    out[0].result = file->read(offset_of(indices[0]), std::span(bytes.data(), bytes.size()));
    out[0].fields[0].bytes = bytes.bytes();
  }

 private:
  const std::string path_;
  const FileIdentity identity_;
};

class ReadAheadCancels : public testing::Test {
 protected:
  ReadAheadCancels() : before_(*remote_options()) {
    RemoteOptions patient;
    patient.stall_seconds = 600;
    patient.hedge = false;
    set_remote_options(patient);
    ahead_ = std::make_unique<ReadAhead>(std::make_shared<Spaced>(server_.url()),
                                         std::vector<bool>{true}, size_t{4} << 20);
    opened_ = server_.requests();
  }
  ~ReadAheadCancels() override {
    ahead_.reset();
    set_remote_options(before_);
  }

  static ReadOrder order() {
    return {.index_of = [](int64_t sequence) { return sequence; }, .count = kRecords};
  }
  // Starts a stream whose requests all hang; returns how many there are.
  int start_hanging() {
    hangs_ = true;
    ahead_->start(order());
    const int wanted = static_cast<int>(ahead_->counts().requests);
    EXPECT_GT(wanted, 1);
    while (server_.requests() < opened_ + wanted) std::this_thread::yield();
    return wanted;
  }
  void wait_for_aborted(int count) const {
    while (server_.aborted() < count) std::this_thread::yield();
  }

  const RemoteOptions before_;
  std::atomic<bool> hangs_{false};
  LoopbackServer server_{offset_of(kRecords),
                         [this](int) { return LoopbackFault{.hangs = hangs_}; }};
  std::unique_ptr<ReadAhead> ahead_;
  int opened_ = 0;
};

TEST_F(ReadAheadCancels, RecordsThatAreLeftOut) {
  const int hanging = start_hanging();
  hangs_ = false;
  ahead_->skip(0, kRecords - 1);
  wait_for_aborted(hanging);
  RecordData data;
  ahead_->give_back(ahead_->fetch(kRecords - 1, kRecords - 1, data, true));
  ASSERT_TRUE(data.result) << data.result.error().message();
  EXPECT_EQ(data.fields[0].bytes[7], byte_at(offset_of(kRecords - 1) + 7));
}

TEST_F(ReadAheadCancels, TheRecordsOfAnAbandonedStream) {
  const int hanging = start_hanging();
  hangs_ = false;
  ahead_->stop();
  wait_for_aborted(hanging);
  ahead_->start(order());
  RecordData data;
  for (int64_t i = 0; i < kRecords; ++i) {
    ahead_->give_back(ahead_->fetch(i, i, data, true));
    ASSERT_TRUE(data.result) << data.result.error().message();
  }
  EXPECT_EQ(ahead_->held_bytes(), 0u);
}

TEST_F(ReadAheadCancels, AllRecordsWhenDestroyed) {
  const int hanging = start_hanging();
  ahead_.reset();
  wait_for_aborted(hanging);
}

}  // namespace
}  // namespace headrace
