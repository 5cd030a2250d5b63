// SPDX-License-Identifier: Apache-2.0
// Counts requests to asynchronous storage.
#pragma once

#include <cstdint>

namespace headrace {

struct ReadCounts {
  int64_t requests = 0;
  uint64_t bytes = 0;
};

}  // namespace headrace
