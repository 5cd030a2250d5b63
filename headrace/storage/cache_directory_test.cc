// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/cache_directory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
std::string text_of(const Buffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data()), buffer.size()};
}
size_t entries(const std::string& folder) {
  return size_t(std::distance(std::filesystem::directory_iterator(folder), {}));
}

// Sets a variable of the environment, and puts it back.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    value ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  ~Variable() { old_ ? ::setenv(name_, old_->c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

TEST(CacheDirectory, FollowsTheEnvironment) {
  Variable home("HOME", "/home/jane");
  {
    Variable own("HEADRACE_CACHE", "/fast/cache");
    EXPECT_EQ(CacheDirectory::of_user().path(), "/fast/cache");
  }
  Variable own("HEADRACE_CACHE", nullptr);
  {
    Variable xdg("XDG_CACHE_HOME", "/xdg");
    EXPECT_EQ(CacheDirectory::of_user().path(), "/xdg/headrace");
  }
  Variable xdg("XDG_CACHE_HOME", "relative");
  EXPECT_EQ(CacheDirectory::of_user().path(), "/home/jane/.cache/headrace");
  Variable none("HEADRACE_CACHE", "");
  EXPECT_EQ(CacheDirectory::of_user().path(), "");
}

TEST(CacheDirectory, ReturnsWhatWasWrittenLast) {
  TemporaryFolder folder;
  const CacheDirectory cache(folder / "not/made/yet");
  Buffer buffer;
  EXPECT_FALSE(cache.read("a", buffer));
  ASSERT_TRUE(cache.write("a", bytes_of("first")));
  ASSERT_TRUE(cache.write("a", bytes_of("second, longer")));
  ASSERT_TRUE(cache.read("a", buffer));
  EXPECT_EQ(text_of(buffer), "second, longer");
  EXPECT_EQ(entries(cache.path()), 1u);  // no temporary file stays
}

TEST(CacheDirectory, SharedByManyUsersKeepsTheirEntriesSeparate) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give files away";
  TemporaryFolder folder;
  const CacheDirectory cache(folder / "shared");
  Buffer buffer;
  ASSERT_TRUE(cache.write("a", bytes_of("mine")));
  ASSERT_EQ(::chmod(cache.path().c_str(), 01777), 0);
  EXPECT_TRUE(cache.read("a", buffer));
  ASSERT_EQ(::chmod(cache.path_of("a").c_str(), 0666), 0);
  EXPECT_FALSE(cache.read("a", buffer));
  ASSERT_EQ(::chmod(cache.path_of("a").c_str(), 0644), 0);
  ASSERT_EQ(::chown(cache.path_of("a").c_str(), 1234, 1234), 0);
  EXPECT_FALSE(cache.read("a", buffer));
  ASSERT_EQ(::symlink(cache.path_of("a").c_str(), cache.path_of("b").c_str()), 0);
  EXPECT_FALSE(cache.read("b", buffer));
  ASSERT_TRUE(cache.write("a", bytes_of("mine again")));  // root may; others are refused by sticky
  EXPECT_TRUE(cache.read("a", buffer));
  ASSERT_EQ(::chown(cache.path_of("a").c_str(), 1234, 1234), 0);
  ASSERT_EQ(::chmod(cache.path().c_str(), 0755), 0);  // a folder that its owner has filled
  EXPECT_TRUE(cache.read("a", buffer));
}

TEST(CacheDirectory, OnANetworkFileSystemIsNotMapped) {
  EXPECT_FALSE(may_be_mapped(0x6969)) << "NFS";
  EXPECT_FALSE(may_be_mapped(static_cast<int32_t>(0xFF534D42))) << "CIFS, where long has 32 bits";
  EXPECT_FALSE(may_be_mapped(0x0BD00BD0)) << "Lustre";
  EXPECT_TRUE(may_be_mapped(0xEF53)) << "ext4";
  EXPECT_TRUE(may_be_mapped(0x01021994)) << "tmpfs";
}

TEST(CacheDirectory, ThatCannotBeWrittenIsNotUsed) {
  TemporaryFolder folder;
  const CacheDirectory below_a_file(folder.write("file", "x") + "/cache");
  Buffer buffer;
  EXPECT_FALSE(below_a_file.write("a", bytes_of("x")));
  EXPECT_FALSE(below_a_file.read("a", buffer));
  EXPECT_FALSE(CacheDirectory("/proc/nowhere").write("a", bytes_of("x")));
  EXPECT_FALSE(CacheDirectory("").write("a", bytes_of("x")));
  std::filesystem::create_directories(folder / "c/a");  // a folder has the entry's name
  EXPECT_FALSE(CacheDirectory(folder / "c").write("a", bytes_of("x")));
  EXPECT_EQ(entries(folder / "c"), 1u);
}

TEST(CacheDirectory, SeveralWritersNeverMixTheirEntries) {
  TemporaryFolder folder;
  const CacheDirectory cache(folder.path());
  std::vector<std::jthread> writers;
  for (char letter : {'a', 'b', 'c', 'd'}) {
    writers.emplace_back([&cache, letter] {
      const std::string text(20000, letter);
      for (int i = 0; i < 20; ++i) EXPECT_TRUE(cache.write("entry", bytes_of(text)));
    });
  }
  Buffer buffer;
  for (int i = 0; i < 50; ++i) {
    if (!cache.read("entry", buffer)) continue;
    EXPECT_EQ(text_of(buffer), std::string(20000, char(buffer.data()[0])));
  }
  writers.clear();
  EXPECT_EQ(entries(folder.path()), 1u);
}

}  // namespace
}  // namespace headrace
