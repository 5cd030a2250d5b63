// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/resources.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "headrace/base/cores.h"

namespace headrace {
namespace {

int local_world_size() {
  const char* text = std::getenv("LOCAL_WORLD_SIZE");
  return text ? std::max(1, std::atoi(text)) : 1;
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

ResolvedThreads threads_from(const AllowedCores& allowed, int ranks) {
  const int cores = allowed.count();
  std::string origin = std::to_string(allowed.affinity) +
                       (allowed.affinity == 1 ? " allowed core" : " allowed cores");
  if (cores < allowed.affinity) origin += ", cgroup allows " + std::to_string(cores);
  if (ranks > 1) origin += " / LOCAL_WORLD_SIZE " + std::to_string(ranks);
  int threads = std::max(1, cores / ranks);
  if (threads - 1 >= 4) {
    --threads;
    origin += ", less one for the trainer";
  }
  return {threads, origin};
}

ResolvedThreads default_threads() { return threads_from(allowed_cores(), local_world_size()); }

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
