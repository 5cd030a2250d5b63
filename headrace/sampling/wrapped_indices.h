// SPDX-License-Identifier: Apache-2.0
// The records at positions that may be beyond the epoch's end: padding repeats its first records.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/sampling/sampler.h"

namespace headrace {

// `out.size()` records starting at position `begin`, in an epoch with `size` positions. REQUIRES:
// size > 0, unless `out` is empty.
void wrapped_indices(const Sampler& sampler, uint64_t seed, uint64_t epoch, int64_t begin,
                     int64_t size, std::span<int64_t> out);

}  // namespace headrace
