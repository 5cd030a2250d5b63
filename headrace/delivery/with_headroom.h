// SPDX-License-Identifier: Apache-2.0
// How much device memory to allocate: the current need, with room for growth.
#pragma once

#include <cstddef>

namespace headrace {

// Batches that differ a little in size do not make it grow each time.
inline size_t with_headroom(size_t bytes) { return (bytes + bytes / 8 + 4095) / 4096 * 4096; }

}  // namespace headrace
