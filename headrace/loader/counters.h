// SPDX-License-Identifier: Apache-2.0
// A loader's counters, as one table (base/counter.h).
#pragma once

#include <span>

#include "headrace/base/counter.h"
#include "headrace/loader.h"

namespace headrace {

// In the order of stats().
std::span<const Counter<LoaderStats>> loader_counters();

}  // namespace headrace
