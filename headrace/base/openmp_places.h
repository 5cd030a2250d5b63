// SPDX-License-Identifier: Apache-2.0
// The places among which the process's OpenMP runtime divides its threads, if the user bound them
// (OMP_PROC_BIND and the like).
//
// It binds the main thread as well (GNU's runtime as soon as it is loaded), and threads started
// from there inherit that one core. So the mask of the main thread is then no limit of the
// process, as that of taskset is.
#pragma once

#include <sched.h>

#include <vector>

namespace headrace {

// Places of all loaded runtimes; none where the user did not ask for bound threads.
std::vector<cpu_set_t> openmp_places();

// All places' cores, for a thread that is bound to one of the places; the same cores for one that
// is not, whose cores somebody else chose.
cpu_set_t widened(const cpu_set_t& own, const std::vector<cpu_set_t>& places);

}  // namespace headrace
