// SPDX-License-Identifier: Apache-2.0
// The cores and the memory that this process may use. Cores are limited by affinity (taskset, a
// job's binding) and by the quotas of the process's cgroup and all parent cgroups (a container's or
// a job's); memory by the limits of the same cgroups and by the machine's free memory.
#pragma once

#include <sched.h>

#include <cstddef>
#include <optional>
#include <string>

namespace headrace {

struct AllowedCores {
  int affinity = 1;  // cores that its threads may run on, even if OpenMP has bound the caller
  double quota = 0;  // CPU time that the cgroups allow, in cores; 0: unlimited
  // This process has fewer cores than its parent: a launcher bound it, so if several ranks run on
  // this machine, these cores are for this rank alone.
  bool bound = false;
  // Cores available under both limits, at least one.
  int count() const;
};

// Queries the system; limits that it does not report are treated as absent. `root` is prepended to
// the paths of the cgroups' files, for tests.
AllowedCores allowed_cores(const std::string& root = "");

// The mask to give to a new thread: all cores, if OpenMP has bound the calling thread, whose mask
// it inherits. Empty: the inherited mask is right.
std::optional<cpu_set_t> cores_beyond_inherited();

// Bytes that this process may still allocate: the machine's free memory, within the limits of its
// control groups. The page cache can be reclaimed, so it counts as free. `root` is prepended to the
// paths of system files, for tests.
size_t available_memory(const std::string& root = "");

}  // namespace headrace
