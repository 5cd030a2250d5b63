// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/available_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <initializer_list>
#include <optional>

#include "headrace/base/cgroup.h"

namespace headrace {
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

// The kernel gives up clean pages of files and what it can shrink (directory entries) before it
// refuses memory; dirty pages must be written first, and do not count.
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
