// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "headrace/base/process_limits.h"

namespace headrace {
namespace {

TEST(Cores, AreTheMinimumOfAffinityAndQuotaButAtLeastOne) {
  EXPECT_EQ((AllowedCores{8, 0}.count()), 8);
  EXPECT_EQ((AllowedCores{8, 16.0}.count()), 8);
  EXPECT_EQ((AllowedCores{8, 8.0}.count()), 8);
  EXPECT_EQ((AllowedCores{8, 2.5}.count()), 2);
  EXPECT_EQ((AllowedCores{8, 0.5}.count()), 1);
}

TEST(Cores, FollowTheAffinity) {
  std::thread([] {  // so that no other thread's affinity changes
    cpu_set_t set;
    ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    int first = 0;
    while (!CPU_ISSET(first, &set)) ++first;
    CPU_ZERO(&set);
    CPU_SET(first, &set);
    ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
    EXPECT_EQ(allowed_cores().affinity, 1);
    EXPECT_EQ(allowed_cores().count(), 1);
  })
      .join();
}

// A simulated file system root that contains the files which the code reads.
class CoresOfGroups : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "cores_" +
            testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text << "\n";
  }
  std::string root_;
};

TEST_F(CoresOfGroups, WithoutAQuotaAllTimeIsAllowed) {
  EXPECT_EQ(allowed_cores(root_).quota, 0);
  write("/sys/fs/cgroup/cpu.max", "max 100000");
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
  write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(allowed_cores(root_).quota, 0);
}

TEST_F(CoresOfGroups, AContainersRootIsItsCgroup) {
  write("/proc/self/cgroup", "0::/kubepods/pod7/not-to-be-seen-here");
  write("/sys/fs/cgroup/cpu.max", "250000 100000");
  EXPECT_EQ(allowed_cores(root_).quota, 2.5);
}

TEST_F(CoresOfGroups, AnyParentCgroupMayHaveTheLowestQuota) {
  write("/proc/self/cgroup", "0::/user.slice/job/step");
  write("/sys/fs/cgroup/user.slice/job/step/cpu.max", "max 100000");
  write("/sys/fs/cgroup/user.slice/job/cpu.max", "300000 100000");
  write("/sys/fs/cgroup/user.slice/cpu.max", "1600000 100000");
  EXPECT_EQ(allowed_cores(root_).quota, 3);
}

TEST_F(CoresOfGroups, AnyParentCgroupMayHaveTheLowestQuotaInVersionOne) {
  write("/proc/self/cgroup", "5:cpu,cpuacct:/docker/abc\n0::/");
  write("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "800000");
  write("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us", "100000");
  write("/sys/fs/cgroup/cpu/docker/cpu.cfs_quota_us", "200000");
  write("/sys/fs/cgroup/cpu/docker/cpu.cfs_period_us", "50000");
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
  EXPECT_EQ(allowed_cores(root_).quota, 4);
}

}  // namespace
}  // namespace headrace
