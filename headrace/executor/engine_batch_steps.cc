// SPDX-License-Identifier: Apache-2.0
// Batch steps on filled slots (Note [Groups of positions] in ops/op.h). Whoever settles the last
// row of a group runs them, while the others are at other rows: there is no barrier for the batch.
#include <algorithm>
#include <numeric>

#include "headrace/base/clock.h"
#include "headrace/executor/engine.h"

namespace headrace {
void Engine::note_groups(OpenBatch& batch) const {
  if (options_.task.plan->batch_steps().empty()) return;
  const int64_t group = options_.task.plan->batch_group(), rows = batch.builder.rows();
  for (int64_t row = 0; row < rows; row += group) {
    batch.unsettled.push_back(static_cast<int>(std::min(group, rows - row)));
  }
}

bool Engine::is_settled(const RecordRun& run) const {
  if (!has_python_steps_) return true;
  const auto begin = run.flight.begin();
  return std::all_of(begin, begin + run.rows, [](const InFlight& it) { return it.settled(); });
}

// REQUIRES: all rows of the run are settled, and were not when this was called before.
void Engine::finish_groups(RecordRun& run, Renderer& renderer) {
  const int64_t group = options_.task.plan->batch_group();
  OpenBatch& batch = *run.batch;
  const double begin = now();
  for (int64_t row = run.first_row; row < run.first_row + run.rows;) {
    const int64_t number = row / group;
    const int64_t end = std::min<int64_t>((number + 1) * group, run.first_row + run.rows);
    bool complete = false;
    {
      MutexLock lock(mutex_);  // which also shows what others have written into their rows
      batch.unsettled[number] -= static_cast<int>(end - row);
      complete = batch.unsettled[number] == 0;
    }
    row = end;
    if (!complete || stopping_) continue;  // a batch that is stopped has rows that nobody wrote
    const int64_t first = number * group;
    const int64_t count = std::min(group, batch.builder.rows() - first);
    Result<void> done = batch.builder.run_batch_steps(first, count, options_.task.seed);
    if (done) continue;
    const int64_t index =
        order_.index_at(batch.builder.epoch(), batch.builder.range().begin + first);
    MutexLock lock(mutex_);
    batch.failures.push_back({.row = static_cast<int>(first),
                              .record = index,
                              .error = std::move(done.error()),
                              .fatal = true});
  }
  renderer.seconds().transform += now() - begin;
}

}  // namespace headrace
