// SPDX-License-Identifier: Apache-2.0
// Memory that this process may still allocate: the machine's free memory, within the limits of its
// control groups (of a container or a job). The page cache can be reclaimed, so it counts as free.
#pragma once

#include <cstddef>
#include <string>

namespace headrace {

// Bytes. `root` is prepended to the paths of system files, for tests.
size_t available_memory(const std::string& root = "");

}  // namespace headrace
