// SPDX-License-Identifier: Apache-2.0
// Memory that this process may still take: the machine's free memory, within the limits of its
// control groups (a container's, a job's). Memory that holds files which can be read again, the
// page cache, is free as soon as someone wants it, and counts as such.
#pragma once

#include <cstddef>
#include <string>

namespace headrace {

// Bytes. `root` stands before the system's files, for tests.
size_t available_memory(const std::string& root = "");

}  // namespace headrace
