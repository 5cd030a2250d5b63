// SPDX-License-Identifier: Apache-2.0
// Which unpacked copies go when room is needed, and which never do.
#include "headrace/storage/copy_eviction.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <set>

#include "headrace/storage/temporary_folder.h"
#include "headrace/storage/unpacked_copy.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBytes = 100'000;  // of a copy

std::string plain(char letter) { return std::string(kBytes, letter); }

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A process that does something, and then something else again and again until it is killed.
class Child {
 public:
  explicit Child(
      const std::function<bool()>& first, const std::function<void()>& then = [] { ::pause(); }) {
    int pipe[2];
    if (::pipe(pipe) != 0) std::abort();
    process_ = ::fork();
    if (process_ == 0) {
      ::alarm(60);  // whatever becomes of the test
      const char good = first() ? 'y' : 'n';
      if (::write(pipe[1], &good, 1) != 1) ::_exit(1);
      for (;;) then();
    }
    char good = 0;
    started_ = ::read(pipe[0], &good, 1) == 1 && good == 'y';
    ::close(pipe[0]);
    ::close(pipe[1]);
  }
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  bool started() const { return started_; }
  void end() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }

 private:
  pid_t process_ = -1;
  bool started_ = false;
};

class CopyEvictionTest : public testing::Test {
 protected:
  void SetUp() override {
    limit("250000");
    for (const char letter : {'a', 'b', 'c'}) {
      const gzFile file = gzopen((data / name_of(letter)).c_str(), "wb");
      gzwrite(file, plain(letter).data(), kBytes);
      gzclose(file);
    }
  }
  void TearDown() override { ::unsetenv("HEADRACE_CACHE_LIMIT"); }

  static std::string name_of(char letter) { return std::string(1, letter) + ".gz"; }
  static void limit(const char* text) { ::setenv("HEADRACE_CACHE_LIMIT", text, 1); }
  Result<UnpackedCopy> open(char letter, CopiesInUse& copies, const UnpackLimits& limits = {}) {
    return unpacked_copy(data / name_of(letter), Packing::kGzip, copies, {}, limits);
  }
  // Opened so many minutes ago, and closed.
  std::string opened(char letter, int minutes) {
    CopiesInUse copies(cache);
    const std::string path = open(letter, copies)->path;
    fs::last_write_time(path + ".about",
                        fs::file_time_type::clock::now() - std::chrono::minutes(minutes));
    return path;
  }

  TemporaryFolder data, folder;
  CacheDirectory cache{folder.path()};
};

TEST_F(CopyEvictionTest, the_copy_that_was_opened_longest_ago_goes_first) {
  const std::string a = opened('a', 30), b = opened('b', 20);
  CopiesInUse copies(cache);
  const auto c = open('c', copies);
  ASSERT_TRUE(c) << c.error().message();
  EXPECT_TRUE(content_of(c->path) == plain('c'));
  EXPECT_FALSE(fs::exists(a));
  EXPECT_FALSE(fs::exists(a + ".about"));
  EXPECT_TRUE(fs::exists(b));
  EXPECT_EQ(copies.deleted().copies, 1);
  EXPECT_EQ(copies.deleted().bytes, kBytes);
}

TEST_F(CopyEvictionTest, opening_a_copy_again_lets_another_go_first) {
  const std::string a = opened('a', 30), b = opened('b', 20);
  CopiesInUse copies(cache);
  {
    CopiesInUse once_more(cache);
    ASSERT_TRUE(open('a', once_more));
  }
  ASSERT_TRUE(open('c', copies));
  EXPECT_TRUE(fs::exists(a));
  EXPECT_FALSE(fs::exists(b));
}

TEST_F(CopyEvictionTest, a_copy_in_use_stays_and_whoever_finds_no_room_is_told) {
  auto users = std::make_unique<CopiesInUse>(cache);
  const std::string a = open('a', *users)->path, b = open('b', *users)->path;
  CopiesInUse copies(cache);
  const auto refused = open('c', copies);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code->id, "HR0210");
  EXPECT_NE(refused.error().what.find("HEADRACE_CACHE_LIMIT, 250000 bytes"), std::string::npos)
      << refused.error().what;
  EXPECT_TRUE(content_of(a) == plain('a') && content_of(b) == plain('b'));
  users.reset();
  EXPECT_TRUE(open('c', copies));
  EXPECT_EQ(copies.deleted().copies, 1);
}

TEST_F(CopyEvictionTest, a_copy_that_another_process_uses_stays_until_that_has_ended) {
  Child user([&] {
    static CopiesInUse copies(cache);
    return open('a', copies).has_value() && open('b', copies).has_value();
  });
  ASSERT_TRUE(user.started());
  EXPECT_EQ(delete_unused_copies(cache, UINT64_MAX).copies, 0);
  user.end();
  EXPECT_EQ(delete_unused_copies(cache, UINT64_MAX).copies, 2);
}

TEST_F(CopyEvictionTest, a_child_made_by_fork_goes_on_using_the_copies_of_its_parent) {
  auto copies = std::make_unique<CopiesInUse>(cache);
  const std::string a = open('a', *copies)->path;
  Child child([] { return true; });
  ASSERT_TRUE(child.started());
  {
    Child other([&] {  // which is done with it at once
      copies.reset();
      return true;
    });
    ASSERT_TRUE(other.started());
  }
  EXPECT_EQ(delete_unused_copies(cache, UINT64_MAX).copies, 0);  // the parent's
  copies.reset();
  EXPECT_EQ(delete_unused_copies(cache, UINT64_MAX).copies, 0);  // the child's
  child.end();
  EXPECT_EQ(delete_unused_copies(cache, UINT64_MAX).copies, 1);
}

TEST_F(CopyEvictionTest, a_copy_that_will_be_wanted_does_not_go_for_one_wanted_before) {
  const std::string a = opened('a', 30), b = opened('b', 20);
  limit("300000");
  CopiesInUse copies(cache);
  hold_copy(data / "a.gz", copies);
  ASSERT_TRUE(open('c', copies));
  limit("200000");
  ASSERT_TRUE(open('c', copies));  // it is there: nothing has to go
  EXPECT_TRUE(fs::exists(a) && fs::exists(b));
  fs::remove(b);
  fs::remove(b + ".about");
  EXPECT_FALSE(open('b', copies));
  EXPECT_TRUE(fs::exists(a));
}

TEST_F(CopyEvictionTest, nothing_that_is_no_copy_of_ours_is_deleted) {
  const std::string a = opened('a', 30), b = opened('b', 20);
  std::ofstream(a, std::ios::binary) << "of another size";
  std::set<std::string> kept = {fs::path(a).filename(), fs::path(a + ".about").filename(),
                                "unpacked-in-use"};
  for (const char* name : {"unpacked-0123456789abcdef", "unpacked-1123456789abcdef.about",
                           "unpacked-x", "index-1", "unpacked-0123456789ABCDEE"}) {
    folder.write(name, "somebody's");
    kept.insert(name);
  }
  folder.write("unpacked-2123456789abcdef", "with odd notes");
  folder.write("unpacked-2123456789abcdef.about", "odd");
  kept.insert({"unpacked-2123456789abcdef", "unpacked-2123456789abcdef.about"});
  fs::create_directory(folder / "unpacked-3123456789abcdef");
  kept.insert("unpacked-3123456789abcdef");
  const std::string mine = data.write("mine", plain('b'));  // after a link with a copy's notes
  fs::create_symlink(mine, folder / "unpacked-4123456789abcdef");
  fs::copy_file(b + ".about", folder / "unpacked-4123456789abcdef.about");
  kept.insert({"unpacked-4123456789abcdef", "unpacked-4123456789abcdef.about"});

  EXPECT_EQ(delete_unused_copies(cache, UINT64_MAX).copies, 1);  // b
  std::set<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    left.insert(entry.path().filename());
  }
  EXPECT_EQ(left, kept);
  EXPECT_TRUE(fs::exists(mine));
}

TEST_F(CopyEvictionTest, a_copy_opened_while_it_is_deleted_is_unpacked_again) {
  Child deletes([] { return true; }, [&] { (void)delete_unused_copies(cache, UINT64_MAX); });
  ASSERT_TRUE(deletes.started());
  int found = 0, made = 0;
  std::string last;
  for (int i = 0; i < 300; ++i) {
    ::usleep(static_cast<useconds_t>(i % 7 * 50));  // the other's turn, now and then
    CopiesInUse copies(cache);
    const auto copy = open('a', copies);
    ASSERT_TRUE(copy) << copy.error().message();
    ASSERT_TRUE(content_of(copy->path) == plain('a')) << i;
    struct stat status{};
    ASSERT_EQ(::stat(copy->path.c_str(), &status), 0);
    const std::string now =
        std::to_string(status.st_ino) + " " + std::to_string(status.st_ctim.tv_nsec);
    (std::exchange(last, now) == now ? found : made) += 1;
  }
  EXPECT_GT(made, 1) << found;  // both really met
}

TEST_F(CopyEvictionTest, without_a_limit_a_full_disk_keeps_no_unused_copy_and_serves_all) {
  const std::string a = opened('a', 30);
  ::unsetenv("HEADRACE_CACHE_LIMIT");
  UnpackLimits limits;
  limits.wish_free = 1.0;  // as if it were nearly full
  CopiesInUse copies(cache);
  const std::string b = open('b', copies, limits)->path;
  ASSERT_TRUE(open('c', copies, limits));
  EXPECT_FALSE(fs::exists(a));
  EXPECT_TRUE(content_of(b) == plain('b'));
}

TEST_F(CopyEvictionTest, where_files_cannot_be_locked_no_copy_is_deleted) {
  const std::string a = opened('a', 30);
  fs::remove(folder / "unpacked-in-use");
  fs::create_directory(folder / "unpacked-in-use");
  EXPECT_EQ(delete_unused_copies(cache, UINT64_MAX).copies, 0);
  EXPECT_TRUE(fs::exists(a));
  CopiesInUse copies(cache);
  EXPECT_TRUE(open('a', copies));
}

TEST_F(CopyEvictionTest, a_limit_that_is_no_size_is_refused) {
  const std::pair<const char*, uint64_t> sizes[] = {{"0", 0},
                                                    {" 1000 ", 1000},
                                                    {"5B", 5},
                                                    {"2 kB", 2000},
                                                    {"3MiB", 3u << 20},
                                                    {"200 GB", 200'000'000'000},
                                                    {"64g", 64'000'000'000},
                                                    {"1 TiB", uint64_t{1} << 40}};
  for (const auto& [text, bytes] : sizes) {
    limit(text);
    const auto got = cache_limit();
    ASSERT_TRUE(got) << text;
    EXPECT_EQ(got->value(), bytes) << text;
  }
  limit("");
  EXPECT_FALSE(cache_limit()->has_value());
  for (const char* text : {"much", "-1", "10 %", "5 i", "5 kmg", "1e9", "9999999999 TB", "1.5.2",
                           "123456789012345678901"}) {
    limit(text);
    CopiesInUse copies(cache);
    const auto refused = open('a', copies);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code->id, "HR0279");
    EXPECT_NE(refused.error().message().find(text), std::string::npos);
  }
}

}  // namespace
}  // namespace headrace
