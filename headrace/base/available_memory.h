// SPDX-License-Identifier: Apache-2.0
// How much memory this process may still take: what the machine has free, and what its cgroup (a
// container's share) leaves of that.
#pragma once

#include <cstddef>

namespace headrace {

size_t available_memory();  // bytes

}  // namespace headrace
