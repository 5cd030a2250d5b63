// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/cores.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

namespace headrace {
namespace {

int affinity_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

// Whether the parent may run on more cores: then they were taken from this process.
bool has_fewer_than_parent() {
  cpu_set_t own, parents, both;
  CPU_ZERO(&own);
  CPU_ZERO(&parents);
  if (sched_getaffinity(0, sizeof own, &own) != 0) return false;
  if (getppid() <= 0 || sched_getaffinity(getppid(), sizeof parents, &parents) != 0) return false;
  CPU_AND(&both, &own, &parents);
  return CPU_EQUAL(&both, &own) && CPU_COUNT(&own) < CPU_COUNT(&parents);
}

// "max 100000" or "200000 100000"; version 2 of cgroups, then version 1.
double cgroup_cores() {
  std::ifstream v2("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (v2 >> quota >> period)
    return quota == "max" || period <= 0 ? 0 : std::atof(quota.c_str()) / period;
  std::ifstream q("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), p("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double v1 = 0;
  return q >> v1 && p >> period && v1 > 0 && period > 0 ? v1 / period : 0;
}

}  // namespace

int AllowedCores::count() const {
  if (quota <= 0 || quota >= affinity) return affinity;
  return std::max(1, static_cast<int>(std::floor(quota)));
}

AllowedCores allowed_cores() { return {affinity_cores(), cgroup_cores(), has_fewer_than_parent()}; }

}  // namespace headrace
