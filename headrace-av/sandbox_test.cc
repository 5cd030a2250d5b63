// SPDX-License-Identifier: Apache-2.0
#include "sandbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>

namespace headrace::media {
namespace {

// Exit code of a sandboxed process; 99 if the sandbox is unavailable.
int confined(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    if (!enter_sandbox()) _exit(99);
    syscall(SYS_exit_group, work());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

// 0: the call was rejected.
int refused(long result) { return result == -1 && errno == EPERM ? 0 : 1; }

TEST(Sandbox, OpensNoFile) {
  EXPECT_EQ(
      confined([] { return refused(syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY)); }), 0);
  EXPECT_EQ(confined([] { return refused(syscall(SYS_memfd_create, "x", 0)); }), 0);
}

TEST(Sandbox, CannotOpenSocketsOrSignalOrTraceProcesses) {
  EXPECT_EQ(confined([] { return refused(syscall(SYS_socket, AF_INET, SOCK_STREAM, 0)); }), 0);
  EXPECT_EQ(confined([] { return refused(syscall(SYS_kill, getppid(), 0)); }), 0);
  EXPECT_EQ(confined([] { return refused(syscall(SYS_ptrace, 0, 0, 0, 0)); }), 0);
}

TEST(Sandbox, StartsNoProcess) {
  EXPECT_EQ(confined([] { return refused(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); }), 0);
  EXPECT_EQ(confined([] {
              char* const none[] = {nullptr};
              return refused(syscall(SYS_execve, "/bin/true", none, none));
            }),
            0);
}

TEST(Sandbox, HasMemoryThatCannotBeExecuted) {
  const auto map = [](int protection) {
    return syscall(SYS_mmap, nullptr, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  };
  EXPECT_EQ(confined([&] { return map(PROT_READ | PROT_WRITE) == -1 ? 1 : 0; }), 0);
  EXPECT_EQ(confined([&] { return refused(map(PROT_READ | PROT_WRITE | PROT_EXEC)); }), 0);
  EXPECT_EQ(confined([] {
              static char page[8192];
              return refused(syscall(SYS_mprotect, page, 4096, PROT_READ | PROT_EXEC));
            }),
            0);
}

TEST(Sandbox, CannotGrowOrWriteASharedFile) {
  const int file = memfd_create("shared", 0);
  ASSERT_EQ(ftruncate(file, 4096), 0);
  const auto written = [&](off_t at) {
    lseek(file, at, SEEK_SET);
    return confined([&] {
      signal(SIGXFSZ, SIG_IGN);
      return write(file, "x", 1) == 1 ? 1 : 0;
    });
  };
  EXPECT_NE(written(0), 1);
  EXPECT_NE(written(4096), 1);
  EXPECT_EQ(lseek(file, 0, SEEK_END), 4096);
  // Mapped memory stays writable.
  EXPECT_EQ(confined([&] {
              void* const there = mmap(nullptr, 4096, PROT_WRITE, MAP_SHARED, file, 0);
              if (there == MAP_FAILED) return 1;
              static_cast<char*>(there)[4095] = 'x';
              return 0;
            }),
            0);
  close(file);
}

TEST(Sandbox, MayUseOpenDescriptors) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(confined([&] { return write(ends[1], "x", 1) == 1 ? 0 : 1; }), 0);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace headrace::media
