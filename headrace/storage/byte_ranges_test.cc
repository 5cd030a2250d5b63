// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/byte_ranges.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "headrace/storage/file.h"

namespace headrace {
namespace {

std::vector<uint8_t> some_bytes(size_t count) {
  std::vector<uint8_t> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(i * 7 + i / 251);
  return bytes;
}

class ByteRangesTest : public testing::Test {
 protected:
  ByteRangesTest()
      : path_(testing::TempDir() + "byte_ranges_" + std::to_string(::getpid())),
        bytes_(some_bytes(1 << 20)) {
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes_.data()), std::streamsize(bytes_.size()));
  }
  ~ByteRangesTest() override { std::filesystem::remove(path_); }

  ByteRanges open() const {
    Result<File> file = File::open(path_);
    EXPECT_TRUE(file);
    return ByteRanges(std::make_shared<const File>(std::move(*file)));
  }

  const std::string path_;
  const std::vector<uint8_t> bytes_;
};

TEST_F(ByteRangesTest, AFileEqualsItsBytesInMemory) {
  const ByteRanges file = open(), memory(bytes_);
  ASSERT_EQ(file.size(), memory.size());
  Buffer kept, kept_too;
  for (const uint64_t offset : {0, 1, 4095, 65536, 1048575, 1048576, 1048577, 5}) {
    for (const uint64_t count : {0, 1, 11, 5000, 300000, 1 << 20}) {
      const auto one = file.at(offset, count), other = memory.at(offset, count);
      ASSERT_TRUE(one && other);
      EXPECT_TRUE(std::ranges::equal(*one, *other)) << offset << " " << count;
      const auto first = file.keep(offset, count, kept),
                 second = memory.keep(offset, count, kept_too);
      ASSERT_TRUE(first && second);
      EXPECT_TRUE(std::ranges::equal(*first, *second));
      if (offset + count > bytes_.size()) continue;
      std::vector<uint8_t> read(count), read_too(count);
      ASSERT_TRUE(file.read(offset, read) && memory.read(offset, read_too));
      EXPECT_EQ(read, read_too);
    }
  }
}

TEST_F(ByteRangesTest, AFileTruncatedWhileReadIsAnErrorNotACrash) {
  const ByteRanges file = open();
  std::filesystem::resize_file(path_, 1000);
  std::vector<uint8_t> out(4000);
  const Result<void> read = file.read(0, out);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code->id, "HR0205");
  EXPECT_FALSE(file.at(500000, 10));
}

TEST_F(ByteRangesTest, ATableOfGigabytesIsRefusedBeforeMemoryIsTaken) {
  std::filesystem::resize_file(path_, uint64_t{1} << 40);  // a hole
  const ByteRanges file = open();
  Buffer memory;
  EXPECT_EQ(file.at(0, file.size()).error().code->id, "HR0206");
  EXPECT_EQ(file.keep(0, file.size(), memory).error().code->id, "HR0206");
  EXPECT_EQ(memory.capacity(), 0u);
  EXPECT_EQ(file.at(uint64_t{1} << 39, 3)->size(), 3u);
}

TEST_F(ByteRangesTest, CopiesOutliveEachOther) {
  ByteRanges copy;
  {
    const ByteRanges file = open();
    copy = file;
  }
  EXPECT_EQ(copy.at(7, 1)->front(), bytes_[7]);
}

}  // namespace
}  // namespace headrace
