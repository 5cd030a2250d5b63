// SPDX-License-Identifier: Apache-2.0
// Reads whose deadline has passed cancel their requests.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "headrace/storage/file.h"
#include "headrace/storage/file_set.h"
#include "headrace/storage/read_deadline.h"
#include "headrace/storage/remote/loopback_server_test.h"
#include "headrace/storage/remote/remote_options.h"

namespace headrace {
namespace {

constexpr uint64_t kObjectBytes = 3'000'000;

class RemoteDeadline : public testing::Test {
 protected:
  RemoteDeadline() : before_(*remote_options()) {
    RemoteOptions patient;
    patient.stall_seconds = 600;
    patient.hedge = false;
    set_remote_options(patient);
  }
  ~RemoteDeadline() override { set_remote_options(before_); }

  void wait_for_aborted(int count) const {
    while (server_.aborted() < count) std::this_thread::yield();
  }

  const RemoteOptions before_;
  std::atomic<bool> hangs_{false};
  LoopbackServer server_{kObjectBytes, [this](int) { return LoopbackFault{.hangs = hangs_}; }};
};

TEST_F(RemoteDeadline, CancelsAReadOfAnOpenFile) {
  const Result<File> file = File::open(server_.url());
  ASSERT_TRUE(file);
  hangs_ = true;
  const ReadDeadline deadline(0.05);
  std::vector<uint8_t> out(1000);
  const Result<void> read = file->read(1'000'000, out);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code->id, "HR0228");
  wait_for_aborted(1);
}

TEST_F(RemoteDeadline, CancelsRangesThatAreRequestedTogether) {
  const FileSet files({server_.url()});
  hangs_ = true;
  const ReadDeadline deadline(0.05);
  const FileRange ranges[] = {{.offset = 0, .bytes = 100'000}, {.offset = 2'000'000, .bytes = 9}};
  const RangeBytes bytes = read_ranges(files, ranges);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code->id, "HR0228");
  wait_for_aborted(2);
}

TEST_F(RemoteDeadline, CancelsTheInspectionOfAFile) {
  hangs_ = true;
  const ReadDeadline deadline(0.05);
  const Result<File> file = File::open(server_.url() + "?other");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code->id, "HR0228");
  wait_for_aborted(1);
}

TEST_F(RemoteDeadline, CancelsAReadOfAWholeFile) {
  hangs_ = true;
  const ReadDeadline deadline(0.05);
  Buffer bytes;
  const Result<void> read = read_file(server_.url(), bytes);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code->id, "HR0228");
  wait_for_aborted(1);
}

}  // namespace
}  // namespace headrace
