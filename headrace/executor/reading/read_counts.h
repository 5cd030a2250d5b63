// SPDX-License-Identifier: Apache-2.0
// What was asked of storages that answer later.
#pragma once

#include <cstdint>

namespace headrace {

struct ReadCounts {
  int64_t requests = 0;
  uint64_t bytes = 0;
};

}  // namespace headrace
