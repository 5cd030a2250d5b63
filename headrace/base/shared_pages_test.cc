// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/shared_pages.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace headrace {
namespace {

constexpr size_t kBytes = size_t{1} << 20, kTable = 100;

std::string name_here(const std::string& name) {
  return "headrace-test-" + std::to_string(::getpid()) + "-" + name;
}

std::unique_ptr<SharedPages> shared(const std::string& name) {
  std::string why;
  auto pages = SharedPages::shared(name, kBytes, kTable, why);
  EXPECT_TRUE(pages) << why;
  return pages;
}

std::atomic_ref<uint64_t> counter_of(const SharedPages& pages) {
  return std::atomic_ref(*reinterpret_cast<uint64_t*>(pages.writable()));
}

// A child process that exits with status 0 if `run` returns true.
pid_t forked(const std::function<bool()>& run) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(run() ? 0 : 1);
  return child;
}

int status_of(pid_t child) {
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

// Blocks every process that calls pass() until the gate is opened, which closes the pipe.
class Gate {
 public:
  Gate() { EXPECT_EQ(::pipe(ends_.data()), 0); }
  ~Gate() { open(); }
  void pass() {
    open();
    char none = 0;
    EXPECT_EQ(::read(ends_[0], &none, 1), 0);
  }
  void open() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

TEST(SharedPages, processes_that_open_them_concurrently_get_the_same_pages) {
  constexpr int kProcesses = 8;
  const std::string name = name_here("race");
  Gate start, end;
  std::array<int, 2> added{};
  ASSERT_EQ(::pipe(added.data()), 0);
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    children.push_back(forked([&] {
      start.pass();
      const auto pages = shared(name);
      counter_of(*pages).fetch_add(1);
      if (::write(added[1], "a", 1) != 1) return false;
      end.pass();
      return counter_of(*pages).load() == kProcesses;
    }));
  }
  start.open();
  for (int i = 0; i < kProcesses; ++i) {
    char one = 0;
    ASSERT_EQ(::read(added[0], &one, 1), 1);
  }
  end.open();
  for (const pid_t child : children) EXPECT_EQ(status_of(child), 0);
  EXPECT_EQ(counter_of(*shared(name)).load(), 0u) << "nothing remains of them";
}

TEST(SharedPages, writes_are_visible_to_other_processes) {
  const std::string name = name_here("bytes");
  const std::string text = "records";
  Gate written;
  const pid_t reader = forked([&] {
    written.pass();
    const auto pages = shared(name);
    return std::string(reinterpret_cast<const char*>(pages->memory()) + kBytes - 7, 7) == text;
  });
  const auto pages = shared(name);
  EXPECT_TRUE(pages->write(kBytes - 7, {reinterpret_cast<const uint8_t*>(text.data()), 7}));
  written.open();
  EXPECT_EQ(status_of(reader), 0);
}

TEST(SharedPages, different_names_or_sizes_give_different_pages) {
  const auto pages = shared(name_here("one"));
  counter_of(*pages) = 7;
  EXPECT_EQ(counter_of(*shared(name_here("one"))).load(), 7u);
  EXPECT_EQ(counter_of(*shared(name_here("on"))).load(), 0u);
  EXPECT_EQ(counter_of(*shared(name_here("one2"))).load(), 0u);
  std::string why;
  const auto larger = SharedPages::shared(name_here("one"), 2 * kBytes, kTable, why);
  EXPECT_EQ(counter_of(*larger).load(), 0u);
  EXPECT_EQ(counter_of(*SharedPages::alone(kBytes, kTable, why)).load(), 0u);
}

TEST(SharedPages, remain_while_one_process_has_them_even_if_others_are_killed) {
  const std::string name = name_here("killed");
  auto pages = shared(name);
  const pid_t child = forked([&] {
    counter_of(*shared(name)) = 5;
    return ::kill(::getpid(), SIGKILL) != 0;
  });
  EXPECT_TRUE(WIFSIGNALED(status_of(child)));
  EXPECT_EQ(counter_of(*shared(name)).load(), 5u);
  pages.reset();
  EXPECT_EQ(counter_of(*shared(name)).load(), 0u);
}

TEST(SharedPages, cannot_be_truncated_under_a_reader) {
  const std::string name = name_here("sealed");
  const auto pages = shared(name);
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    if (std::filesystem::read_symlink(entry.path(), ignored) != "/memfd:" + name + " (deleted)") {
      continue;
    }
    ++found;
    EXPECT_NE(::truncate(entry.path().c_str(), 0), 0);
    struct stat status{};
    EXPECT_EQ(::stat(entry.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0600u);
  }
  EXPECT_EQ(found, 1);
}

// A file as a process may have left it in /proc, or put it there on purpose.
int planted(const std::string& name, mode_t mode, int seals) {
  const int file = ::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
  EXPECT_EQ(::ftruncate(file, kBytes), 0);
  EXPECT_EQ(::pwrite(file, "planted", 7, 0), 7);
  EXPECT_EQ(::fchmod(file, mode), 0);
  EXPECT_EQ(::fcntl(file, F_ADD_SEALS, seals), 0);
  return file;
}

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

TEST(SharedPages, a_file_that_is_unsealed_or_accessible_to_others_is_not_used) {
  const std::string name = name_here("planted");
  for (const auto& [mode, seals] : {std::pair<mode_t, int>{0600, F_SEAL_SEAL}, {0666, kSeals}}) {
    const int file = planted(name, mode, seals);
    EXPECT_EQ(counter_of(*shared(name)).load(), 0u);
    ::close(file);
  }
  const int file = planted(name, 0600, kSeals);  // what is taken
  EXPECT_NE(counter_of(*shared(name)).load(), 0u);
  ::close(file);
}

TEST(SharedPages, a_file_of_another_user_is_not_used) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, which can look at processes of others";
  const std::string name = name_here("user");
  Gate checked;
  std::array<int, 2> made{};
  ASSERT_EQ(::pipe(made.data()), 0);
  const pid_t other = forked([&] {
    if (::setuid(65534) != 0) return false;
    planted(name, 0600, kSeals);
    if (::write(made[1], "a", 1) != 1) return false;
    checked.pass();
    return true;
  });
  char one = 0;
  ASSERT_EQ(::read(made[0], &one, 1), 1);
  EXPECT_EQ(counter_of(*shared(name)).load(), 0u);
  checked.open();
  EXPECT_EQ(status_of(other), 0);
}

TEST(SharedPages, a_write_fails_if_no_memory_is_available) {
  const pid_t child = forked([&] {
    const auto pages = shared(name_here("full"));
    ::signal(SIGXFSZ, SIG_IGN);
    const struct rlimit half{kBytes / 2, kBytes / 2};
    ::setrlimit(RLIMIT_FSIZE, &half);
    const std::vector<uint8_t> bytes(1000, 1);
    return pages->write(kBytes / 2 - 1000, bytes) && !pages->write(kBytes / 2 - 500, bytes);
  });
  EXPECT_EQ(status_of(child), 0);
}

TEST(SharedPages, a_process_that_is_not_dumpable_shares_nothing) {
  const pid_t child = forked([] {
    ::prctl(PR_SET_DUMPABLE, 0);
    std::string why;
    return !SharedPages::shared(name_here("hidden"), kBytes, kTable, why) &&
           why.find("PR_SET_DUMPABLE") != std::string::npos;
  });
  EXPECT_EQ(status_of(child), 0);
}

}  // namespace
}  // namespace headrace
