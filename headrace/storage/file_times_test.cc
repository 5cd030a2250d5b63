// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/file_times.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <time.h>

#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

TEST(FileTimes, are_nanoseconds_since_1970) {
  TemporaryFolder folder;
  const std::string path = folder.write("a", "");
  const timespec times[2] = {{.tv_sec = 1, .tv_nsec = 2}, {.tv_sec = 1'700'000'000, .tv_nsec = 7}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(changed_ns(status) / kSecondNs, 1'700'000'000);
  const int64_t seconds = ::time(nullptr);
  const int64_t now = now_ns();
  EXPECT_GE(now, (seconds - 1) * kSecondNs);
  EXPECT_LE(now, (::time(nullptr) + 2) * kSecondNs);  // time() is behind by up to a tick
}

TEST(FileTimes, any_time_is_representable) {
  struct stat status{};
  status.st_mtim.tv_sec = INT64_MAX;
  (void)changed_ns(status);  // wraps: the sanitizer would stop at an overflow
  status.st_mtim.tv_sec = -1;
  EXPECT_EQ(changed_ns(status), -kSecondNs);
}

TEST(FileTimes, a_change_in_the_same_clock_tick_may_be_hidden) {
  const int64_t looked = 100 * kSecondNs;
  EXPECT_FALSE(changed_just_now(98 * kSecondNs, looked));
  EXPECT_TRUE(changed_just_now(98 * kSecondNs + 1, looked));
  EXPECT_TRUE(changed_just_now(looked, looked));
  EXPECT_TRUE(changed_just_now(looked + 1, looked));  // of another machine's clock
}

}  // namespace
}  // namespace headrace
