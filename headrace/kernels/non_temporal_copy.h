// SPDX-License-Identifier: Apache-2.0
// memcpy for memory that this core does not read again: stores go around the caches, so written
// lines are not read first, and cached data stays.
#pragma once

#include <cstddef>

namespace headrace {

// The copy can be read by other threads, and by devices, once this returns and they
// synchronize with the caller. REQUIRES: no overlap.
void copy_non_temporal(void* to, const void* from, size_t bytes);

}  // namespace headrace
