// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/resources.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "headrace/base/process_limits.h"

namespace headrace {

int local_world_size() {
  const char* text = std::getenv("LOCAL_WORLD_SIZE");
  return text ? std::max(1, std::atoi(text)) : 1;
}

ResolvedThreads threads_from(const AllowedCores& allowed, int ranks) {
  const int cores = allowed.count();
  std::string origin = std::to_string(allowed.affinity) +
                       (allowed.affinity == 1 ? " allowed core" : " allowed cores");
  if (cores < allowed.affinity) origin += ", cgroup allows " + std::to_string(cores);
  // A launcher that binds each rank to separate cores has already divided the cores, but not a time
  // limit.
  const bool divided = allowed.bound && ranks > 1;
  int share = cores / ranks;
  if (divided) {
    share = allowed.affinity;
    if (allowed.quota > 0) share = std::min(share, static_cast<int>(allowed.quota / ranks));
  }
  if (divided) origin += ", bound by the launcher";
  if (ranks > 1 && (!divided || allowed.quota > 0)) {
    origin += " / LOCAL_WORLD_SIZE " + std::to_string(ranks);
  }
  int threads = std::max(1, share);
  if (threads - 1 >= 4) {
    --threads;
    origin += ", minus one for the trainer";
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
