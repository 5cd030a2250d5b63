// SPDX-License-Identifier: Apache-2.0
// Rows that are made outside of the engine that delivers them: requests and results. They consist
// of numbers, bytes and errors, so they can be sent to another machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/executor/bad_records.h"
#include "headrace/image/render_counts.h"

namespace headrace {

// Rows [first, first + count) of a batch of this rank. They begin and end at boundaries of the
// batch steps' groups (Plan::batch_group), or of the batch.
struct RowsRequest {
  int64_t epoch = 0, batch = 0;
  int first = 0, count = 0;
};

// Rows that an engine has lent: its threads do not make them unless they are recalled.
struct LentRows : RowsRequest {
  int64_t number = 0;    // of this loan; unique in the process
  int64_t sequence = 0;  // of its first row in the stream
};

// The results apart from the rows' bytes. Row numbers count from the first requested row.
struct RowsResult {
  RowFailures failures = {};
  std::vector<int> dropped = {};
  int64_t warnings = 0;
  PictureRemarks remarks = {};
  StageSeconds stages = {};
  double seconds = 0;
};

// By output: the bytes of all rows, consecutively.
using RowBytes = std::vector<std::span<const uint8_t>>;

}  // namespace headrace
