// SPDX-License-Identifier: Apache-2.0
// A synthetic source, for tests and for planning with datasets too large for a local disk: records
// are computed from their number, and shards and blocks are as for a dataset of that size.
#pragma once

#include <cstdint>

#include "headrace/sources/source.h"

namespace headrace {

struct SimulatedData {
  int64_t records = 0;
  int64_t record_bytes = 110'000;  // per record, in its shard
  int64_t shards = 1;              // with equal numbers of records
  int64_t classes = 1000;
  Shape image = {3, 32, 32};  // shape of the delivered image, uint8
};

// Fields: image, label (number % classes) and number. Uses no memory per record, shard or block.
// REQUIRES: all numbers are positive, and no more shards than records.
SourcePtr simulated(const SimulatedData& data);

}  // namespace headrace
