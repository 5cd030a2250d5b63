// SPDX-License-Identifier: Apache-2.0
// Resources of this process: cores by affinity and cgroup, memory by cgroup and RAM, shared
// fairly between the ranks of this machine (LOCAL_WORLD_SIZE).
#pragma once

#include <cstddef>
#include <string>

#include "headrace/base/process_limits.h"

namespace headrace {

// LOCAL_WORLD_SIZE; 1 if it is not set.
int local_world_size();

// A default value, and an explanation of where it comes from.
struct ResolvedThreads {
  int threads;
  std::string origin;  // "2 allowed cores"
};
struct ResolvedMemory {
  size_t bytes;
  std::string origin;  // "a quarter of 23.4 GiB available"
};

// Allowed cores / LOCAL_WORLD_SIZE, or all of them if a launcher bound this rank to separate cores;
// minus one for the trainer if at least four remain.
ResolvedThreads default_threads();
// A quarter of the available memory / LOCAL_WORLD_SIZE.
ResolvedMemory default_memory_limit();

// The same for given cores; for tests.
ResolvedThreads threads_from(const AllowedCores& allowed, int local_world_size);

}  // namespace headrace
