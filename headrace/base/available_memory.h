// SPDX-License-Identifier: Apache-2.0
// Memory that this process may still allocate: the machine's free memory, within the limits of its
// control groups (a container's, a job's). The page cache can be reclaimed, so it counts as free.
#pragma once

#include <cstddef>
#include <string>

namespace headrace {

// Bytes. `root` stands before the system's files, for tests.
size_t available_memory(const std::string& root = "");

}  // namespace headrace
