// SPDX-License-Identifier: Apache-2.0
// Resources of this process: cores by affinity and cgroup, memory by cgroup and RAM, shared
// fairly between the ranks of this machine (LOCAL_WORLD_SIZE).
#pragma once

#include <cstddef>
#include <string>

#include "headrace/base/cores.h"

namespace headrace {

// LOCAL_WORLD_SIZE; 1 where it is not set.
int local_world_size();

// A default, and in words where it came from.
struct ResolvedThreads {
  int threads;
  std::string origin;  // "2 allowed cores"
};
struct ResolvedMemory {
  size_t bytes;
  std::string origin;  // "a quarter of 23.4 GiB available"
};

// Allowed cores / LOCAL_WORLD_SIZE, unless a launcher gave this rank cores of its own; less one for
// the trainer where that leaves at least four.
ResolvedThreads default_threads();
// A quarter of what is available / LOCAL_WORLD_SIZE.
ResolvedMemory default_memory_limit();

// The same from given facts; for tests.
ResolvedThreads threads_from(const AllowedCores& allowed, int local_world_size);

}  // namespace headrace
