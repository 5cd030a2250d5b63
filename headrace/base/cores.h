// SPDX-License-Identifier: Apache-2.0
// How many processor cores this process may use: by affinity (taskset, a job's binding) and by the
// quotas of its cgroup and all above (of a container or a job). The machine's number of cores is
// not used.
#pragma once

#include <sched.h>

#include <optional>
#include <string>

namespace headrace {

struct AllowedCores {
  int affinity = 1;  // cores that its threads may run on, whichever OpenMP keeps the caller to
  double quota = 0;  // cores' worth of time that the cgroups allow; 0: any
  // The cores are fewer than those of the process that started this one: a launcher bound it, so
  // where several ranks run here, these are this one's own.
  bool bound = false;
  // Cores available under both limits, at least one.
  int count() const;
};

// Asks the system; what it does not tell allows everything. `root` stands before the paths of the
// cgroups' files, for tests.
AllowedCores allowed_cores(const std::string& root = "");

// The mask to give to a new thread: all cores, if OpenMP has bound the calling thread, whose mask
// it inherits. None: the inherited mask is the allowed one.
std::optional<cpu_set_t> cores_beyond_inherited();

}  // namespace headrace
