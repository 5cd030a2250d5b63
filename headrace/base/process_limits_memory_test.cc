// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "headrace/base/process_limits.h"

namespace headrace {
namespace {

constexpr size_t kGiB = size_t{1} << 30;

// A simulated file system root that contains the files which the code reads.
class AvailableMemory : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "available_memory_" +
            testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
    write("/proc/meminfo", "MemTotal: 999 kB\nMemAvailable:   67108864 kB\n");  // 64 GiB
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  static std::string gib(double count) {
    return std::to_string(static_cast<size_t>(count * double(kGiB))) + "\n";
  }
  std::string root_;
};

TEST_F(AvailableMemory, IsTheMachinesWithoutCgroups) {
  EXPECT_EQ(available_memory(root_), 64 * kGiB);
}

TEST_F(AvailableMemory, APageCacheThatFillsTheCgroupIsAvailable) {
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/memory.max", gib(32));
  write("/sys/fs/cgroup/memory.current", gib(31.96));
  write("/sys/fs/cgroup/memory.stat", "anon " + gib(2) + "file " + gib(29.5) + "inactive_file " +
                                          gib(20) + "active_file " + gib(9) + "file_dirty " +
                                          gib(1) + "slab_reclaimable " + gib(0.5));
  EXPECT_NEAR(double(available_memory(root_)), 28.54 * double(kGiB), 0.01 * double(kGiB));
}

TEST_F(AvailableMemory, AnyParentCgroupMayHaveTheLowerLimit) {
  write("/proc/self/cgroup", "0::/slurm/job/step\n");
  write("/sys/fs/cgroup/slurm/job/step/memory.max", "max\n");
  write("/sys/fs/cgroup/slurm/job/step/memory.current", gib(1));
  write("/sys/fs/cgroup/slurm/job/memory.max", gib(8));
  write("/sys/fs/cgroup/slurm/job/memory.current", gib(3));
  write("/sys/fs/cgroup/slurm/memory.max", gib(48));
  write("/sys/fs/cgroup/slurm/memory.current", gib(10));
  EXPECT_EQ(available_memory(root_), 5 * kGiB);
}

TEST_F(AvailableMemory, MemoryHighIsALimit) {
  write("/proc/self/cgroup", "0::/a\n");
  write("/sys/fs/cgroup/a/memory.max", "max\n");
  write("/sys/fs/cgroup/a/memory.high", gib(4));
  write("/sys/fs/cgroup/a/memory.current", gib(1));
  EXPECT_EQ(available_memory(root_), 3 * kGiB);
}

TEST_F(AvailableMemory, AContainersCgroupIsTheRootOfItsMount) {
  write("/proc/self/cgroup", "0::/kubepods/pod1/not-to-be-seen-here\n");
  write("/sys/fs/cgroup/memory.max", gib(4));
  write("/sys/fs/cgroup/memory.current", gib(1));
  EXPECT_EQ(available_memory(root_), 3 * kGiB);
}

TEST_F(AvailableMemory, CgroupVersionOneIsReadToo) {
  write("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/job\n");
  write("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", gib(16));
  write("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", gib(15));
  write("/sys/fs/cgroup/memory/job/memory.stat",
        "total_inactive_file " + gib(10) + "total_active_file " + gib(2) + "total_dirty 0\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(available_memory(root_), 13 * kGiB);
}

}  // namespace
}  // namespace headrace
