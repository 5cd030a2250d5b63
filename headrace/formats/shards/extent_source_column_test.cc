// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>

#include "headrace/formats/shards/extent_source.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

const ErrorCode kBadValue{"HRTEST", ErrorKind::kData, "bad value", "Only in this test."};

// Two files of numbers: record i contains 7 * i.
class ExtentColumnTest : public testing::Test {
 protected:
  static constexpr int64_t kEach = 2500, kRecords = 2 * kEach;

  void SetUp() override {
    std::vector<std::string> paths;
    for (int file = 0; file < 2; ++file) {
      std::string bytes;
      for (int64_t i = 0; i < kEach; ++i) {
        const int64_t value = 7 * (i + file * kEach);
        bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
        index.records.add(static_cast<uint64_t>(i) * sizeof value, sizeof value);
      }
      index.records.end_file();
      paths.push_back(data.write("file-" + std::to_string(file), bytes));
    }
    files = std::make_unique<FileSet>(paths);
  }
  std::vector<int64_t> column(const std::function<void(int64_t)>& asked = {}) const {
    return column_of(*files, index, [&](FileWindow& window, int64_t record, const Extent& extent) {
      if (asked) asked(record);
      int64_t value = 0;
      const Result<void> read =
          window.read(extent.offset, {reinterpret_cast<uint8_t*>(&value), sizeof value});
      if (!read) return Result<int64_t>(read.error());
      if (value % 1400 == 1393) return Result<int64_t>(Error{.code = &kBadValue});
      return Result<int64_t>(value);
    });
  }

  TemporaryFolder data;
  ContainerIndex index;
  std::unique_ptr<FileSet> files;
};

TEST_F(ExtentColumnTest, a_bad_value_is_minus_one_and_does_not_affect_others) {
  const std::vector<int64_t> values = column();
  ASSERT_EQ(values.size(), static_cast<size_t>(kRecords));
  for (int64_t i = 0; i < kRecords; ++i) EXPECT_EQ(values[i], i % 200 == 199 ? -1 : 7 * i) << i;
}

TEST_F(ExtentColumnTest, records_marked_damaged_are_not_read) {
  const std::vector<int64_t> damaged = {17, 3000, kRecords - 2};
  for (const int64_t record : damaged) {
    index.damage.push_back({.record = record, .offset = 0, .code = {}, .what = {}, .hint = {}});
  }
  std::atomic<int64_t> asked = 0;
  const std::vector<int64_t> values =
      column([&](int64_t record) { asked += std::ranges::count(damaged, record); });
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(values[16], 7 * 16);
  for (const int64_t record : damaged) EXPECT_EQ(values[record], -1) << record;
}

TEST_F(ExtentColumnTest, a_missing_file_is_an_error_with_its_path) {
  std::filesystem::remove(files->path(1));
  try {
    column();
    FAIL() << "values of a file that is not there";
  } catch (const Exception& exception) {
    EXPECT_EQ(exception.error().code->kind, ErrorKind::kStorage);
    EXPECT_EQ(exception.error().where.file, files->path(1));
    EXPECT_EQ(exception.error().where.record, kEach);
  }
}

}  // namespace
}  // namespace headrace
