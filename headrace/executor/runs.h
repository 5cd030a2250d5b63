// SPDX-License-Identifier: Apache-2.0
// Runs of rows in progress: being executed by a worker, waiting for a Python transform, or waiting
// to be resumed (after returning from Python, or after running out of memory). The length of a new
// run is chosen from the measured time per record. Not thread-safe; OpenBatches calls it under its
// mutex. Also describes the runs, for a warning that no batch arrives.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "headrace/executor/record_run.h"
#include "headrace/executor/row_task.h"

namespace headrace {

// What a run does now, and with which records.
struct RunStatus {
  RunActivity::Kind kind = RunActivity::Kind::kWaits;
  int step = -1;     // kInPython
  double since = 0;  // seconds of the steady clock
  std::vector<int64_t> records = {};
};

// REQUIRES: if the run is in Python, it stays there during the call.
RunStatus run_status(const RecordRun& run);

// What the consumer waits for, as text: the records that have taken longest first.
std::string wait_text(std::vector<RunStatus> all, const RowTask& task);

class Runs {
 public:
  // batch_rows: rows of a whole batch. lends: other rows may be made elsewhere meanwhile.
  Runs(int threads, int python_workers, int64_t batch_rows, bool lends);

  // A run of the first of these rows, of suitable length.
  std::unique_ptr<RecordRun> begin(OpenBatch& batch, BatchBuilder& to, Rows rows);
  // A run to resume: one that is back from Python, else one that lacked memory, else null. Call it
  // before starting new runs, which would take memory from these.
  std::unique_ptr<RecordRun> take_on();
  void back_from_python(std::unique_ptr<RecordRun> run) { continued_.push_back(std::move(run)); }
  void lacks_memory(std::unique_ptr<RecordRun> run) { parked_.push_back(std::move(run)); }
  // Ends a run whose rows are settled; its memory is reused.
  void end(std::unique_ptr<RecordRun> run);
  // Removes a run that will never end; may be null.
  void lose(const RecordRun* run) { std::erase(active_, run); }
  // Records how long the records took, and their Python steps.
  void note(const RowsReport& report);
  void note_python(const std::vector<std::unique_ptr<RecordRun>>& runs, double seconds);

  // Whether each Python worker finds a run when it has finished its current ones.
  bool suffice_for_python() const;

  bool empty() const { return active_.empty(); }
  // What workers are doing now, to explain to a waiting consumer.
  std::vector<RunStatus> doing() const;

 private:
  int length_of(int rows) const;

  const int threads_, python_workers_;
  const int64_t batch_rows_;
  const bool lends_;
  std::vector<const RecordRun*> active_;  // begun and not ended
  std::deque<std::unique_ptr<RecordRun>> continued_, parked_;
  std::vector<std::unique_ptr<RecordRun>> spare_;
  double record_seconds_ = 1e-4;  // running means, per record
  double python_seconds_ = 0;
};

}  // namespace headrace
