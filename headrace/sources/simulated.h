// SPDX-License-Identifier: Apache-2.0
// A source without bytes, for tests and for planning with datasets that fit on no local disk:
// records are functions of their number, and shards and blocks are those of a dataset of that size.
#pragma once

#include <cstdint>

#include "headrace/sources/source.h"

namespace headrace {

struct SimulatedData {
  int64_t records = 0;
  int64_t record_bytes = 110'000;  // of one in its shard
  int64_t shards = 1;              // of equal numbers of records
  int64_t classes = 1000;
  Shape image = {3, 32, 32};  // uint8, what is delivered of a record
};

// Fields: image, label (number % classes) and number. It holds nothing per record, shard or block.
// REQUIRES: all numbers are positive, and no more shards than records.
SourcePtr simulated(const SimulatedData& data);

}  // namespace headrace
