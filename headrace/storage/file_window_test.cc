// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/file_window.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "headrace/base/random.h"

namespace headrace {
namespace {

const ErrorCode kBroken{"HRTEST", ErrorKind::kStorage, "broken", "Only in this test."};

class FileWindows : public testing::Test {
 protected:
  FileWindows() : bytes(3 << 20) {
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(mix64(i, 0));
  }
  FileWindow window() {
    return {bytes.size(), [this](uint64_t offset, std::span<uint8_t> out) -> Result<void> {
              ++reads;
              total += out.size();
              if (failing) return Error{.code = &kBroken};
              std::memcpy(out.data(), bytes.data() + offset, out.size());
              return {};
            }};
  }
  // As many bytes as there are, and the right ones.
  void expect(FileWindow& window, uint64_t offset, size_t count) {
    const Result<std::span<const uint8_t>> got = window.at(offset, count);
    ASSERT_TRUE(got);
    const size_t there = offset < bytes.size() ? std::min(count, bytes.size() - offset) : 0;
    ASSERT_EQ(got->size(), there);
    EXPECT_TRUE(std::equal(got->begin(), got->end(), bytes.begin() + std::ptrdiff_t(offset)));
  }

  std::vector<uint8_t> bytes;
  int64_t reads = 0;
  size_t total = 0;
  bool failing = false;
};

TEST_F(FileWindows, nearby_ranges_are_read_together) {
  FileWindow near = window();
  for (uint64_t at = 0; at < bytes.size(); at += 100) expect(near, at, 12);
  EXPECT_LE(reads, 18);
  EXPECT_LE(total, bytes.size() + reads * 200);
}

TEST_F(FileWindows, a_range_is_copied_completely_or_an_error) {
  FileWindow small = window();
  for (const size_t count : {size_t{0}, size_t{1}, size_t{700}, 2 * FileWindow::kLargest}) {
    std::vector<uint8_t> out(count);
    ASSERT_TRUE(small.read(99, out)) << count;
    EXPECT_TRUE(std::equal(out.begin(), out.end(), bytes.begin() + 99)) << count;
  }
  failing = true;  // as a file does when it has ended
  std::vector<uint8_t> out(100);
  const Result<void> beyond = small.read(bytes.size() - 99, out);
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code, &kBroken);
  EXPECT_FALSE(small.read(UINT64_MAX - 50, out));
}

TEST_F(FileWindows, distant_ranges_are_read_separately) {
  FileWindow far(uint64_t{1} << 40, [this](uint64_t, std::span<uint8_t> out) -> Result<void> {
    total += out.size();
    return {};
  });
  for (uint64_t at = 0; at < uint64_t{1} << 30; at += 1 << 20) ASSERT_TRUE(far.at(at, 12));
  EXPECT_LE(total, 1024 * FileWindow::kSmallest + 4 * FileWindow::kSmallest);
}

TEST_F(FileWindows, any_range_gives_its_bytes) {
  FileWindow any = window();
  for (uint64_t i = 0; i < 2000; ++i) {
    expect(any, mix64(i, 1) % (bytes.size() + 50), mix64(i, 2) % 3000);
  }
  expect(any, UINT64_MAX, 5);
  expect(any, bytes.size() - 3, FileWindow::kLargest);
}

TEST_F(FileWindows, an_error_is_returned_and_nothing_is_cached) {
  FileWindow broken = window();
  failing = true;
  EXPECT_FALSE(broken.at(0, 10));
  failing = false;
  expect(broken, 0, 10);
}

}  // namespace
}  // namespace headrace
