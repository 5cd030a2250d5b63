// SPDX-License-Identifier: Apache-2.0
// The places (sets of cores) to which the process's OpenMP runtime binds its threads, if the user
// requested binding (OMP_PROC_BIND and the like).
//
// The runtime binds the main thread as well (libgomp as soon as it is loaded), and threads that the
// main thread starts inherit its place. Then the main thread's affinity mask does not limit the
// process, unlike a mask set by taskset.
#pragma once

#include <sched.h>

#include <vector>

namespace headrace {

// Places of all loaded runtimes; empty if the user did not request binding.
std::vector<cpu_set_t> openmp_places();

// The cores of all places, if the mask `own` lies within one of them; otherwise `own`, which was
// not set by OpenMP.
cpu_set_t widened(const cpu_set_t& own, const std::vector<cpu_set_t>& places);

}  // namespace headrace
