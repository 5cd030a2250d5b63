// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/available_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>

namespace headrace {
namespace {

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

}  // namespace

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

}  // namespace headrace
