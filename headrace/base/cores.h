// SPDX-License-Identifier: Apache-2.0
// How many processor cores this process may use: by affinity (taskset, a job's binding) and by the
// quota of its cgroup (a container's share). The number of cores of the machine is no business of
// anybody here.
#pragma once

namespace headrace {

struct AllowedCores {
  int affinity = 1;  // cores that its threads may run on
  double quota = 0;  // cores' worth of time that the cgroup allows; 0: any
  // The cores are fewer than those of the process that started this one: a launcher bound it, so
  // where several ranks run here, these are this one's own.
  bool bound = false;
  // What is to be had of both, at least one.
  int count() const;
};

// Asks the system; what it does not tell allows everything.
AllowedCores allowed_cores();

}  // namespace headrace
