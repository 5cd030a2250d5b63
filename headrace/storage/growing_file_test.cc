// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/growing_file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace growing_file_test {

std::vector<uint8_t> bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

std::string text_in(const GrowingFile& file, uint64_t offset, size_t count) {
  std::vector<uint8_t> out(count);
  return file.read(offset, out) ? std::string(out.begin(), out.end()) : "nothing";
}

size_t entries(const std::string& folder) {
  return size_t(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(GrowingFile, GetsItsNameOnlyWhenPublished) {
  TemporaryFolder folder;
  {
    auto lost = GrowingFile::create(folder / "a");
    ASSERT_TRUE(lost && lost->append(bytes_of("lost")));
  }
  EXPECT_EQ(entries(folder.path()), 0u);
  auto file = GrowingFile::create(folder / "a");
  ASSERT_TRUE(file && file->append(bytes_of("kept")));
  EXPECT_EQ(GrowingFile::open(folder / "a", false), nullptr);
  EXPECT_TRUE(file->publish(false));
  EXPECT_EQ(text_in(*GrowingFile::open(folder / "a", false), 0, 4), "kept");
  EXPECT_EQ(entries(folder.path()), 1u);
}

TEST(GrowingFile, ReplacesOnlyOnRequest) {
  TemporaryFolder folder;
  const std::string path = folder.write("a", "old");
  const auto before = GrowingFile::open(path, false);
  auto file = GrowingFile::create(path);
  ASSERT_TRUE(file->append(bytes_of("new")));
  EXPECT_FALSE(file->publish(false));
  EXPECT_EQ(text_in(*GrowingFile::open(path, false), 0, 3), "old");
  EXPECT_TRUE(file->publish(true));
  EXPECT_EQ(text_in(*GrowingFile::open(path, false), 0, 3), "new");
  EXPECT_EQ(text_in(*before, 0, 3), "old");  // readers that have it open keep it
  EXPECT_EQ(entries(folder.path()), 1u);
}

TEST(GrowingFile, ReadsAllOrNothing) {
  TemporaryFolder folder;
  const auto file = GrowingFile::open(folder.write("a", "12345"), false);
  EXPECT_EQ(text_in(*file, 1, 4), "2345");
  EXPECT_EQ(text_in(*file, 1, 5), "nothing");
  EXPECT_EQ(text_in(*file, uint64_t{1} << 62, 1), "nothing");
  EXPECT_EQ(text_in(*file, UINT64_MAX, 1), "nothing");
}

TEST(GrowingFile, OpensOnlyRegularFiles) {
  TemporaryFolder folder;
  EXPECT_EQ(GrowingFile::open(folder.path(), false), nullptr);
  EXPECT_EQ(GrowingFile::open(folder / "none", false), nullptr);
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(GrowingFile::open(folder / "pipe", false), nullptr);
  EXPECT_EQ(GrowingFile::create(folder / "no/such/folder"), nullptr);
}

// Every piece is where the file says it is, whichever process appends.
bool append_pieces(const std::string& path, char name, int count) {
  const auto file = GrowingFile::open(path, true);
  for (int i = 0; i < count; ++i) {
    const std::string piece(1 + size_t(i) % 300, name);
    const auto at = file->append(bytes_of(piece));
    if (!at || text_in(*file, *at, piece.size()) != piece) return false;
  }
  return true;
}

TEST(GrowingFile, ThreadsAndProcessesAppendWithoutMixing) {
  TemporaryFolder folder;
  const std::string path = folder.write("a", "");
  std::vector<pid_t> children;
  for (char name : {'x', 'y'}) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(append_pieces(path, name, 2000) ? 0 : 1);
    children.push_back(child);
  }
  EXPECT_TRUE(append_pieces(path, 'z', 2000));
  for (pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  const auto shared = GrowingFile::open(path, true);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (char name : {'a', 'b', 'c'}) {
    threads.emplace_back([&, name] {
      for (int i = 0; i < 500; ++i) {
        const std::string piece(100, name);
        const auto at = shared->append(bytes_of(piece));
        if (!at || text_in(*shared, *at, 100) != piece) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace growing_file_test
}  // namespace headrace
