// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/cores.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "headrace/base/cgroup.h"
#include "headrace/base/openmp_places.h"

namespace headrace {
namespace {

// Empty if the system does not say.
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

}  // namespace headrace
