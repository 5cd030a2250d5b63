// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <vector>

#include "headrace/storage/local_files.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

// Fails as told: each call asks `fault` what to do with it (0: the real thing).
class FaultyCalls : public FileCalls {
 public:
  int open(const char* path, int flags) const override {
    if (open_errors > 0) {
      --open_errors;
      errno = open_error;
      return -1;
    }
    ++open_files;
    return FileCalls::open(path, flags);
  }
  int stat(int descriptor, struct stat* out) const override {
    const int result = FileCalls::stat(descriptor, out);
    out->st_size += pretended_growth;
    return result;
  }
  ssize_t read(int descriptor, void* out, size_t count, int64_t offset) const override {
    ++reads;
    if (before_read) before_read();
    if (read_errors > 0 && offset >= fail_from) {
      --read_errors;
      errno = read_error;
      return -1;
    }
    return FileCalls::read(descriptor, out, std::min(count, most), offset);
  }
  void close(int descriptor) const override {
    --open_files;
    FileCalls::close(descriptor);
  }
  void pause(int milliseconds) const override { pauses.push_back(milliseconds); }

  mutable int open_errors = 0, read_errors = 0, open_files = 0, reads = 0;
  int open_error = 0, read_error = 0;
  int64_t fail_from = 0;
  off_t pretended_growth = 0;
  size_t most = SIZE_MAX;
  std::function<void()> before_read;
  mutable std::vector<int> pauses;
};

class ReadFile : public testing::Test {
 protected:
  static std::string pattern(size_t size) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 + i / 251);
    return bytes;
  }
  std::string text() const { return {reinterpret_cast<const char*>(buffer.data()), buffer.size()}; }

  TemporaryFolder folder;
  FaultyCalls calls;
  Buffer buffer;
};

TEST_F(ReadFile, GivesAllBytes) {
  for (size_t size : {0, 1, 4096, 100001}) {
    const std::string path = folder.write("a", pattern(size));
    ASSERT_TRUE(read_file(path, buffer));
    EXPECT_EQ(text(), pattern(size));
  }
}

TEST_F(ReadFile, KeepsTheBuffersMemory) {
  const std::string large = folder.write("large", pattern(50000)),
                    small = folder.write("small", "x");
  ASSERT_TRUE(read_file(large, buffer));
  const uint8_t* memory = buffer.data();
  ASSERT_TRUE(read_file(small, buffer));
  EXPECT_EQ(buffer.data(), memory);
  EXPECT_EQ(text(), "x");
}

TEST_F(ReadFile, ShortReadsAndInterruptsAreHandled) {
  const std::string path = folder.write("a", pattern(1000));
  calls.most = 7;
  calls.read_errors = 100, calls.read_error = EINTR, calls.fail_from = 70;
  calls.open_errors = 5, calls.open_error = EINTR;
  ASSERT_TRUE(LocalFiles(calls).read_file(path, buffer));
  EXPECT_EQ(text(), pattern(1000));
  EXPECT_TRUE(calls.pauses.empty());
  EXPECT_EQ(calls.open_files, 0);
}

TEST_F(ReadFile, TransientErrorsAreRetriedWithGrowingPauses) {
  const std::string path = folder.write("a", pattern(1000));
  for (int error : {EIO, ESTALE, ETIMEDOUT, EAGAIN}) {
    calls.pauses.clear();
    calls.most = 300, calls.fail_from = 600;
    calls.read_errors = 3, calls.read_error = error;
    ASSERT_TRUE(LocalFiles(calls).read_file(path, buffer)) << error;
    EXPECT_EQ(text(), pattern(1000));
    EXPECT_EQ(calls.pauses, (std::vector<int>{50, 200, 800}));
    EXPECT_EQ(calls.open_files, 0);
  }
}

TEST_F(ReadFile, APermanentErrorNamesFileAndOffset) {
  const std::string path = folder.write("a", pattern(1000));
  calls.most = 300, calls.fail_from = 600;
  calls.read_errors = 1 << 20, calls.read_error = EIO;
  const Result<void> result = LocalFiles(calls).read_file(path, buffer);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code->id, "HR0204");
  EXPECT_EQ(result.error().code->kind, ErrorKind::kStorage);
  EXPECT_FALSE(result.error().code->of_record);
  EXPECT_EQ(result.error().where.file, path);
  EXPECT_EQ(result.error().where.offset, 600);
  EXPECT_NE(result.error().message().find("Input/output error"), std::string::npos);
  EXPECT_EQ(calls.open_files, 0);
}

TEST_F(ReadFile, AStaleHandleIsReopened) {
  const std::string path = folder.write("a", pattern(1000));
  calls.read_errors = 1, calls.read_error = ESTALE;
  int opened_during_read = 0;
  calls.before_read = [&] { opened_during_read = std::max(opened_during_read, calls.open_files); };
  ASSERT_TRUE(LocalFiles(calls).read_file(path, buffer));
  EXPECT_EQ(opened_during_read, 2);
  EXPECT_EQ(text(), pattern(1000));
}

TEST_F(ReadFile, AFileThatShrinksIsADataErrorWithBothSizes) {
  const std::string path = folder.write("a", pattern(1000));
  calls.before_read = [&] { ASSERT_EQ(::truncate(path.c_str(), 400), 0); };
  const Result<void> result = LocalFiles(calls).read_file(path, buffer);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code->id, "HR0205");
  EXPECT_EQ(result.error().code->kind, ErrorKind::kData);
  EXPECT_EQ(result.error().what, "expected 1000 bytes, found 400");
}

TEST_F(ReadFile, AMissingFileIsNamed) {
  const Result<void> result = read_file(folder / "gone.jpg", buffer);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code->id, "HR0201");
  EXPECT_TRUE(result.error().code->of_record);
  EXPECT_EQ(result.error().where.file, folder / "gone.jpg");
  EXPECT_FALSE(result.error().hint.empty());
}

TEST_F(ReadFile, ANameWithANulIsNotTruncated) {
  folder.write("a", "content");
  std::string path = folder / "a";
  path += std::string("\0.jpg", 5);
  EXPECT_EQ(read_file(path, buffer).error().code->id, "HR0201");
}

TEST_F(ReadFile, AFileWithoutReadPermissionIsNamed) {
  calls.open_errors = 1, calls.open_error = EACCES;
  const Result<void> result = LocalFiles(calls).read_file(folder.write("a", "x"), buffer);
  EXPECT_EQ(result.error().code->id, "HR0202");
  EXPECT_NE(result.error().hint.find("chmod"), std::string::npos);
}

TEST_F(ReadFile, TooManyOpenFilesHasASeparateMessage) {
  calls.open_errors = 1 << 20, calls.open_error = EMFILE;
  EXPECT_EQ(LocalFiles(calls).read_file(folder.write("a", "x"), buffer).error().code->id, "HR0207");
  EXPECT_EQ(calls.pauses.size(), 3u);
}

TEST_F(ReadFile, OnlyRegularFilesAreRead) {
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);  // opening it must not wait for a writer
  const Result<void> pipe = read_file(folder / "pipe", buffer);
  EXPECT_EQ(pipe.error().code->id, "HR0203");
  EXPECT_NE(pipe.error().what.find("a named pipe"), std::string::npos);
  EXPECT_NE(read_file(folder.path(), buffer).error().what.find("a folder"), std::string::npos);
  EXPECT_NE(read_file("/dev/zero", buffer).error().what.find("a device"), std::string::npos);
}

TEST_F(ReadFile, AFileAboveTheCapIsRefusedUnread) {
  const std::string path = folder.write("a", "x");
  ASSERT_EQ(::truncate(path.c_str(), off_t{3} << 30), 0);  // sparse
  const Result<void> result = LocalFiles(calls).read_file(path, buffer);
  EXPECT_EQ(result.error().code->id, "HR0206");
  EXPECT_EQ(result.error().code->kind, ErrorKind::kResource);
  EXPECT_EQ(calls.reads, 0);
  EXPECT_EQ(buffer.capacity(), 0u);
  EXPECT_TRUE(read_file(folder.write("b", "12345"), buffer, {.max_bytes = 5}));
  EXPECT_FALSE(read_file(folder.write("b", "123456"), buffer, {.max_bytes = 5}));
}

TEST_F(ReadFile, AfterAFailureTheNextReadWorks) {
  const std::string path = folder.write("a", pattern(1000));
  calls.read_errors = 4, calls.read_error = EIO;
  EXPECT_FALSE(LocalFiles(calls).read_file(path, buffer));
  EXPECT_TRUE(LocalFiles(calls).read_file(path, buffer));
  EXPECT_EQ(text(), pattern(1000));
}

TEST(ReadPrefix, ReturnsTheAvailableBytes) {
  TemporaryFolder folder;
  std::vector<uint8_t> bytes(16);
  EXPECT_EQ(*read_prefix(folder.write("a", "0123456789abcdefXYZ"), bytes), 16u);
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), "0123456789abcdef");
  EXPECT_EQ(*read_prefix(folder.write("b", "xyz"), bytes), 3u);
  EXPECT_EQ(*read_prefix(folder.write("c", ""), bytes), 0u);
  EXPECT_EQ(read_prefix(folder / "none", bytes).error().code->id, "HR0201");
}

TEST(PositionedReads, StayInsideTheFile) {
  TemporaryFolder folder;
  Result<File> file = File::open(folder.write("a", "0123456789"));
  ASSERT_TRUE(file);
  EXPECT_EQ(file->size(), 10u);
  std::vector<uint8_t> out(4);
  ASSERT_TRUE(file->read(6, out));
  EXPECT_EQ(std::string(out.begin(), out.end()), "6789");
  EXPECT_EQ(file->read(7, out).error().what, "expected 11 bytes, found 10");
  EXPECT_FALSE(file->read(UINT64_MAX, out));
  const File moved = std::move(*file);
  ASSERT_TRUE(moved.read(0, out));
  EXPECT_EQ(std::string(out.begin(), out.end()), "0123");
}

TEST(PathTarget, LinksAreFollowedAndPipesAreRefused) {
  TemporaryFolder folder;
  const std::string file = folder.write("a", ""), pipe = folder / "pipe";
  const std::string to_file = folder / "to_file", to_folder = folder / "to_folder",
                    to_nothing = folder / "to_nothing";
  ASSERT_EQ(::symlink(file.c_str(), to_file.c_str()), 0);
  ASSERT_EQ(::symlink(folder.path().c_str(), to_folder.c_str()), 0);
  ASSERT_EQ(::symlink((folder / "none").c_str(), to_nothing.c_str()), 0);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {file, to_file}) {
    EXPECT_TRUE(is_file(path) && !is_folder(path)) << path;
  }
  for (const std::string& path : {folder.path(), folder.path() + "/", to_folder}) {
    EXPECT_TRUE(is_folder(path) && !is_file(path)) << path;
  }
  for (const std::string& path : {pipe, to_nothing, folder / "none", file + "/", std::string()}) {
    EXPECT_FALSE(is_file(path) || is_folder(path)) << path;
  }
}

}  // namespace
}  // namespace headrace
