// SPDX-License-Identifier: Apache-2.0
// memcpy for memory that this core does not read again: stores bypass the caches, so written lines
// are not read first, and cached data is kept.
#pragma once

#include <cstddef>

namespace headrace {

// After this returns, other threads and devices can read the copy once they synchronize with the
// caller. REQUIRES: no overlap.
void copy_non_temporal(void* to, const void* from, size_t bytes);

}  // namespace headrace
