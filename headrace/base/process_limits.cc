// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/process_limits.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "headrace/base/openmp_places.h"

namespace headrace {
namespace {

// --- Control groups ---
// Those of this process: its own and all ancestors, each of which may limit it.
//
// In a container, the mounted root is usually the process's own group, although /proc/self/cgroup
// names the path outside of the container; then only the mount's root exists.

// The group and those above it, as far as visible here, and the mount's root.
std::vector<std::string> folders_of(const std::string& mount, std::string path) {
  std::vector<std::string> folders;
  struct stat found{};
  while (path.size() > 1) {
    if (stat((mount + path).c_str(), &found) == 0) folders.push_back(mount + path);
    path.resize(path.rfind('/'));
  }
  folders.push_back(mount);
  return folders;
}

// Whether a list such as "cpu,cpuacct" contains the name.
bool names(std::string_view list, std::string_view controller) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    if (list.substr(0, end) == controller) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

// Folders of the groups, this process's own first. `controller` ("memory" or "cpu") is for version
// 1. `root` is prepended to /sys/fs/cgroup and /proc/self/cgroup, for tests.
struct CgroupFolders {
  std::vector<std::string> v2, v1;
};
CgroupFolders cgroup_folders(std::string_view controller, const std::string& root) {
  const std::string mount = root + "/sys/fs/cgroup";
  std::string v2_path, v1_path;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // "0::/a/b", "4:cpu,cpuacct:/a/b"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string_view list = std::string_view(line).substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (path.empty() || path.front() != '/' || path.find("..") != std::string::npos) continue;
    if (list.empty()) v2_path = path;
    if (names(list, controller)) v1_path = path;
  }
  return {folders_of(mount, v2_path), folders_of(mount + "/" + std::string(controller), v1_path)};
}

// The number that a file begins with; empty if there is none ("max") or the file is missing.
std::optional<double> leading_number(const std::string& path) {
  std::ifstream file(path);
  double value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

// --- Cores ---

// Empty if the system does not report it.
cpu_set_t mask_of(pid_t process) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  sched_getaffinity(process, sizeof mask, &mask);
  return mask;
}

int count_of(const cpu_set_t& cores) {
  if (const int count = CPU_COUNT(&cores)) return count;
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

// Whether the parent may run on more cores: then they were taken from this process.
bool has_fewer_than_parent(const cpu_set_t& own) {
  if (CPU_COUNT(&own) == 0 || getppid() <= 0) return false;
  const cpu_set_t parents = mask_of(getppid());
  cpu_set_t both;
  CPU_AND(&both, &own, &parents);
  return CPU_EQUAL(&both, &own) && CPU_COUNT(&own) < CPU_COUNT(&parents);
}

// Parses cpu.max: "max 100000" or "200000 100000". None: no limit.
std::optional<double> quota_of_v2(const std::string& group) {
  std::ifstream file(group + "/cpu.max");
  double quota = 0, period = 0;
  if (file >> quota >> period && quota > 0 && period > 0) return quota / period;
  return std::nullopt;
}

std::optional<double> quota_of_v1(const std::string& group) {
  const double quota = leading_number(group + "/cpu.cfs_quota_us").value_or(-1);
  const double period = leading_number(group + "/cpu.cfs_period_us").value_or(0);
  if (quota > 0 && period > 0) return quota / period;
  return std::nullopt;
}

// The lowest limit of the process's own group and those above.
double cgroup_cores(const std::string& root) {
  double least = 0;
  auto limit = [&](std::optional<double> share) {
    if (share && (least == 0 || *share < least)) least = *share;
  };
  const CgroupFolders folders = cgroup_folders("cpu", root);
  for (const std::string& group : folders.v2) limit(quota_of_v2(group));
  for (const std::string& group : folders.v1) limit(quota_of_v1(group));
  return least;
}

}  // namespace

int AllowedCores::count() const {
  if (quota <= 0 || quota >= affinity) return affinity;
  return std::max(1, static_cast<int>(std::floor(quota)));
}

AllowedCores allowed_cores(const std::string& root) {
  const cpu_set_t cores = widened(mask_of(0), openmp_places());
  return {count_of(cores), cgroup_cores(root), has_fewer_than_parent(cores)};
}

std::optional<cpu_set_t> cores_beyond_inherited() {
  const cpu_set_t own = mask_of(0), cores = widened(own, openmp_places());
  if (CPU_EQUAL(&own, &cores)) return std::nullopt;
  return cores;
}

// --- Memory ---

namespace {

size_t available_ram(const std::string& root) {
  std::ifstream file(root + "/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    unsigned long long kib = 0;
    if (std::sscanf(line.c_str(), "MemAvailable: %llu kB", &kib) == 1) return size_t{kib} * 1024;
  }
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// Sum of these entries of a memory.stat file.
double sum_of(const std::string& path, std::initializer_list<std::string_view> names) {
  std::ifstream file(path);
  double sum = 0, value = 0;
  for (std::string name; file >> name >> value;) {
    if (std::find(names.begin(), names.end(), name) != names.end()) sum += value;
  }
  return sum;
}

// Memory left in a group with this limit and use; none without a limit.
std::optional<double> remaining_in(std::optional<double> limit, std::optional<double> used,
                                   double reclaimable) {
  if (!limit) return std::nullopt;
  const double taken = std::max(0.0, used.value_or(0) - reclaimable);
  return std::max(0.0, *limit - taken);
}

}  // namespace

// Before it refuses memory, the kernel reclaims clean file pages and caches that it can shrink
// (directory entries). Dirty pages must be written first, so they do not count.
size_t available_memory(const std::string& root) {
  double bytes = static_cast<double>(available_ram(root));
  const CgroupFolders folders = cgroup_folders("memory", root);
  for (const std::string& group : folders.v2) {
    const double cache =
        sum_of(group + "/memory.stat", {"active_file", "inactive_file", "slab_reclaimable"}) -
        sum_of(group + "/memory.stat", {"file_dirty", "file_writeback"});
    const std::optional<double> used = leading_number(group + "/memory.current");
    for (const char* limit : {"/memory.max", "/memory.high"}) {
      bytes = std::min(
          bytes,
          remaining_in(leading_number(group + limit), used, std::max(0.0, cache)).value_or(bytes));
    }
  }
  for (const std::string& group : folders.v1) {
    const double cache =
        sum_of(group + "/memory.stat", {"total_active_file", "total_inactive_file"}) -
        sum_of(group + "/memory.stat", {"total_dirty", "total_writeback"});
    bytes = std::min(
        bytes, remaining_in(leading_number(group + "/memory.limit_in_bytes"),
                            leading_number(group + "/memory.usage_in_bytes"), std::max(0.0, cache))
                   .value_or(bytes));
  }
  return static_cast<size_t>(bytes);
}

}  // namespace headrace
