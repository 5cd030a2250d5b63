// SPDX-License-Identifier: Apache-2.0
// Describes what the consumer waits for: the records in progress, those that have taken longest
// first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/executor/record_run.h"
#include "headrace/executor/row_task.h"

namespace headrace {

struct RunStatus {
  RunActivity::Kind kind = RunActivity::Kind::kWaits;
  int step = -1;     // kInPython
  double since = 0;  // seconds of the steady clock
  std::vector<int64_t> records = {};
};

// REQUIRES: if the run is in Python, it stays there during the call.
RunStatus run_status(const RecordRun& run);

std::string text_of(std::vector<RunStatus> all, const RowTask& task);

}  // namespace headrace
