// SPDX-License-Identifier: Apache-2.0
// Says in words what the consumer waits for: the records being worked on, the longest first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/executor/record_run.h"
#include "headrace/executor/row_task.h"

namespace headrace {

struct Doing {
  RunActivity::Kind kind = RunActivity::Kind::kWaits;
  int step = -1;     // kInPython
  double since = 0;  // seconds of the steady clock
  std::vector<int64_t> records = {};
};

// REQUIRES: if the run is in Python, it stays there meanwhile.
Doing doing_of(const RecordRun& run);

std::string text_of(std::vector<Doing> all, const RowTask& task);

}  // namespace headrace
