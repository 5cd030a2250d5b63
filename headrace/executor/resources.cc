// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/resources.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

namespace headrace {
namespace {

int local_world_size() {
  const char* text = std::getenv("LOCAL_WORLD_SIZE");
  return text ? std::max(1, std::atoi(text)) : 1;
}

int affinity_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
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

size_t number_in(const char* path) {
  std::ifstream file(path);
  unsigned long long value = 0;
  return file >> value ? static_cast<size_t>(value) : 0;  // "max" does not parse: no limit
}

size_t available_ram() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    unsigned long long kib = 0;
    if (std::sscanf(line.c_str(), "MemAvailable: %llu kB", &kib) == 1) return size_t{kib} * 1024;
  }
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

size_t available_memory() {
  size_t bytes = available_ram();
  if (size_t limit = number_in("/sys/fs/cgroup/memory.max")) {
    bytes = std::min(bytes, limit - std::min(limit, number_in("/sys/fs/cgroup/memory.current")));
  } else if (size_t v1 = number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes")) {
    const size_t used = number_in("/sys/fs/cgroup/memory/memory.usage_in_bytes");
    bytes = std::min(bytes, v1 - std::min(v1, used));
  }
  return bytes;
}

}  // namespace

ResolvedThreads threads_from(int affinity, double cgroup, int ranks) {
  int cores = affinity;
  std::string origin =
      std::to_string(affinity) + (affinity == 1 ? " allowed core" : " allowed cores");
  if (cgroup > 0 && cgroup < cores) {
    cores = std::max(1, static_cast<int>(std::floor(cgroup)));
    origin += ", cgroup allows " + std::to_string(cores);
  }
  if (ranks > 1) origin += " / LOCAL_WORLD_SIZE " + std::to_string(ranks);
  int threads = std::max(1, cores / ranks);
  if (threads - 1 >= 4) {
    --threads;
    origin += ", less one for the trainer";
  }
  return {threads, origin};
}

ResolvedThreads default_threads() {
  return threads_from(affinity_cores(), cgroup_cores(), local_world_size());
}

ResolvedMemory default_memory_limit() {
  const size_t available = available_memory();
  const int ranks = local_world_size();
  char text[96];
  std::snprintf(text, sizeof text, "a quarter of %.1f GiB available", available / 1073741824.0);
  std::string origin = text;
  if (ranks > 1) origin += " / LOCAL_WORLD_SIZE " + std::to_string(ranks);
  return {available / 4 / static_cast<size_t>(ranks), origin};
}

}  // namespace headrace
