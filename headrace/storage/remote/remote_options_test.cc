// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/remote_options.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "headrace/storage/remote/credentials.h"

namespace headrace {
namespace {

// A child that waits for a lock which a thread held when it was forked waits for ever; its alarm
// ends it then.
TEST(RemoteOptions, AForkedChildHasThemEvenIfOtherThreadsHeldTheirLock) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer's own locks may be held by other threads at the fork";
#endif
  std::atomic<bool> over{false};
  std::vector<std::thread> busy;
  for (int i = 0; i < 2; ++i) {
    busy.emplace_back([&] {
      while (!over) {
        set_remote_options(*remote_options());
        set_key_provider("s3", {});
      }
    });
  }
  for (int i = 0; i < 300; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      set_remote_options(*remote_options());
      set_key_provider("s3", {});
      _exit(0);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "fork " << i;
    if (!WIFEXITED(status)) break;
  }
  over = true;
  for (std::thread& thread : busy) thread.join();
}

}  // namespace
}  // namespace headrace
