// SPDX-License-Identifier: Apache-2.0
// How much memory this process may still take: what the machine has free, and what its control
// groups (a container's share, a job's) leave of that. Memory that holds files which can be read
// again, the page cache, is free as soon as somebody wants it, and counts as such.
#pragma once

#include <cstddef>
#include <string>

namespace headrace {

// Bytes. `root` stands before the system's files, for tests.
size_t available_memory(const std::string& root = "");

}  // namespace headrace
