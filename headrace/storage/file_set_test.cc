// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/file_set.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <thread>
#include <vector>

#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

size_t open_files() {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    count += entry.exists() ? 1 : 0;
  }
  return count;
}

// A process that may have 64 files open, a hundred of which are wanted.
class FewDescriptors : public ::testing::Test {
 protected:
  void SetUp() override {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{64, before_.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int i = 0; i < 100; ++i) {
      paths.push_back(data.write(std::to_string(i), std::to_string(100 + i)));
    }
  }
  void TearDown() override { ::setrlimit(RLIMIT_NOFILE, &before_); }

  static std::string read(const FileSet& files, size_t file) {
    std::string out(3, ' ');
    const Result<void> result =
        files.read(file, 0, {reinterpret_cast<uint8_t*>(out.data()), out.size()});
    return result ? out : result.error().message();
  }

  TemporaryFolder data;
  std::vector<std::string> paths;

 private:
  rlimit before_{};
};

TEST_F(FewDescriptors, OneSetReadsAllOfItsFilesWithFewOpen) {
  const size_t before = open_files();
  {
    const FileSet files(paths);
    for (int pass = 0; pass < 2; ++pass) {
      for (size_t i = 0; i < paths.size(); ++i) EXPECT_EQ(read(files, i), std::to_string(100 + i));
    }
    EXPECT_LE(open_files(), before + 16);
    EXPECT_GT(open_files(), before);
  }
  EXPECT_EQ(open_files(), before);
}

TEST_F(FewDescriptors, ManySetsCloseFilesForEachOther) {
  const size_t before = open_files();
  {
    std::vector<std::unique_ptr<FileSet>> sets;
    for (const std::string& path : paths) {
      sets.push_back(std::make_unique<FileSet>(std::vector<std::string>{path}));
    }
    for (size_t i = 0; i < sets.size(); ++i) EXPECT_EQ(read(*sets[i], 0), std::to_string(100 + i));
    EXPECT_LE(open_files(), before + 32);
  }
  EXPECT_EQ(open_files(), before);
}

TEST_F(FewDescriptors, AFileIsOpenedEvenIfOthersHoldAllDescriptors) {
  const FileSet files(paths);
  for (size_t i = 0; i < paths.size(); ++i) read(files, i);
  std::vector<int> others;
  for (int taken = 0; (taken = ::dup(0)) >= 0;) others.push_back(taken);
  const Result<File> one = File::open(paths[0]);  // a shard is closed for it
  EXPECT_TRUE(one) << one.error().message();
  EXPECT_EQ(read(files, 50), "150");
  for (const int descriptor : others) ::close(descriptor);
}

TEST_F(FewDescriptors, ThreadsReadWhileFilesAreClosed) {
  const FileSet files(paths, 4);
  std::vector<std::jthread> threads;
  for (size_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (size_t i = 0; i < 2000; ++i) {
        const size_t file = (i * 37 + thread * 11) % paths.size();
        EXPECT_EQ(read(files, file), std::to_string(100 + file));
      }
    });
  }
}

}  // namespace
}  // namespace headrace
