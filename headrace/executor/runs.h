// SPDX-License-Identifier: Apache-2.0
// The runs of rows that are in work: with workers, at Python, or waiting to be taken on again. How
// long a new one is follows from the time that records take. Guarded by its owner.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "headrace/executor/record_run.h"
#include "headrace/executor/waits_for.h"

namespace headrace {

class Runs {
 public:
  // batch_rows: of a whole batch.
  Runs(int threads, int python_workers, int64_t batch_rows);

  // Of the first of these rows, as many as suit one run.
  std::unique_ptr<RecordRun> begin(OpenBatch& batch, BatchBuilder& to, Rows rows);
  // One to be taken on again, or null: those that are back from Python, then those that lack
  // memory. They come before new ones, which would take it from them.
  std::unique_ptr<RecordRun> take_on();
  void back_from_python(std::unique_ptr<RecordRun> run) { continued_.push_back(std::move(run)); }
  void lacks_memory(std::unique_ptr<RecordRun> run) { parked_.push_back(std::move(run)); }
  // Its rows are settled. Its memory is used again.
  void end(std::unique_ptr<RecordRun> run);
  // It will never be; null: none.
  void lose(const RecordRun* run) { std::erase(active_, run); }
  // So long its records took.
  void note(const RowsReport& report);

  bool empty() const { return active_.empty(); }
  // Current work on records, for a consumer that waits.
  std::vector<Doing> doing() const;

 private:
  int length_of(int rows) const;

  const int threads_, python_workers_;
  const int64_t batch_rows_;
  std::vector<const RecordRun*> active_;  // begun and not ended
  std::deque<std::unique_ptr<RecordRun>> continued_, parked_;
  std::vector<std::unique_ptr<RecordRun>> spare_;
  double record_seconds_ = 1e-4;  // running mean
};

}  // namespace headrace
