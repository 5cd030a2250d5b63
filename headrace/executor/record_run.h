// SPDX-License-Identifier: Apache-2.0
// A short run of consecutive rows of one batch: what a worker claims, and what waits for the host
// thread when the pipeline has a step written in the host language.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "headrace/executor/batch.h"
#include "headrace/executor/memory_gate.h"

namespace headrace {

// A row that something went wrong with.
struct RowFailure {
  int row = 0;
  int64_t record = 0;
  Error error;
  std::string action = {};
  bool fatal = false;  // on_error does not apply, or every substitute was bad as well
};

// A batch that is being filled.
struct OpenBatch {
  BatchBuilder builder;
  int64_t first_sequence = 0;    // of row 0 in the stream
  std::vector<int> pooled = {};  // output numbers whose memory is a slot's
  int claimed = 0, done = 0;     // rows; the engine's lock guards these and all below
  std::vector<RowFailure> failures = {};
  int64_t warnings = 0;
};

// One record of a run, between being read and being written.
struct InFlight {
  RecordData data;
  Record record;
  int step = 0;          // where it stands in the plan
  bool at_host = false;  // it waits at a host step
  bool settled = false;  // written, dropped or failed
  GateHold reserved;     // from its header to its end, where it may wait for the host
  std::optional<HostCall> call;
};

struct RecordRun {
  OpenBatch* batch = nullptr;
  int first_row = 0, rows = 0;
  std::vector<InFlight> flight;  // capacity is kept from run to run
};

}  // namespace headrace
