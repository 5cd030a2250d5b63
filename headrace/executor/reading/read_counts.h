// SPDX-License-Identifier: Apache-2.0
// Counts requests to asynchronous storage, and how separate video files there were read.
#pragma once

#include <cstdint>

namespace headrace {

struct ReadCounts {
  int64_t requests = 0;
  uint64_t bytes = 0;
  int64_t videos_by_range = 0;
  int64_t videos_without_table = 0;  // read whole
};

}  // namespace headrace
