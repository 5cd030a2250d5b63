// SPDX-License-Identifier: Apache-2.0
// memcpy for memory that this core does not read again: stores bypass the caches, so lines are not
// read before they are written, and cached data is not evicted.
#pragma once

#include <cstddef>

namespace headrace {

// After this returns, other threads and devices can read the copy once they synchronize with the
// caller. REQUIRES: no overlap.
void copy_non_temporal(void* to, const void* from, size_t bytes);

}  // namespace headrace
