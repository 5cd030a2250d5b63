// SPDX-License-Identifier: Apache-2.0
// Batch steps on filled slots (Note [Groups of positions] in ops/op.h). Whoever settles the last
// row of a group runs them, while the others are at other rows: there is no barrier for the batch.
#include <algorithm>
#include <numeric>

#include "headrace/base/clock.h"
#include "headrace/executor/engine.h"

namespace headrace {
Result<void> BatchBuilder::run_batch_steps(int64_t first, int64_t count, uint64_t seed) {
  for (const BatchStep& step : plan_.batch_steps()) {
    const int64_t group = step.op->group(), end = first + count;
    for (int64_t row = first; row < end; row += group) {
      Result<void> done = run_batch_step(step, row, std::min(group, end - row), seed);
      if (done) continue;
      if (done.error().note.empty()) done.error().note = "in the batch step " + step.label;
      return done;
    }
  }
  return {};
}

Result<void> BatchBuilder::run_batch_step(const BatchStep& step, int64_t first, int64_t count,
                                          uint64_t seed) {
  std::vector<int64_t> positions, rows;
  std::vector<GroupField> fields(step.outputs.size());
  for (int64_t row = first; row < first + count; ++row) {
    if (dropped_[row]) continue;
    rows.push_back(row);
    positions.push_back(range_.begin + row);
    for (size_t i = 0; i < fields.size(); ++i) {
      const FieldMemory& memory = fields_[step.outputs[i]];
      if (memory.unfinished) continue;
      fields[i].rows.push_back(memory.data + memory.row_bytes * row);
    }
  }
  if (positions.empty()) return {};
  // By the group's first position, whichever of its rows there are.
  const auto draws = [&](uint64_t key) {
    return Draws(seed, static_cast<uint64_t>(epoch_), static_cast<uint64_t>(range_.begin + first),
                 key);
  };
  for (const BatchCondition& condition : step.conditions) {
    const std::vector<int> taken = condition.selection.draw(draws(condition.key));
    if (!std::ranges::count(taken, condition.list)) return {};
  }
  std::vector<std::vector<RowMix>> there(fields.size());
  std::vector<FieldState> states(fields.size());
  for (size_t i = 0; i < fields.size(); ++i) {
    const Output& output = plan_.outputs()[step.outputs[i]];
    states[i] = output.picture();
    if (output.is_clip()) fields[i].pictures = std::ssize(output.pictures);
    fields[i].state = &states[i];
    fields[i].row_bytes = output.bytes_per_record;
    if (fields_[step.outputs[i]].unfinished) fields[i].there = &there[i];
  }
  GroupContext context{fields, positions, plan_.options().memory_format, draws(step.key)};
  if (Result<void> done = step.op->apply(context); !done) return done;
  const auto number = static_cast<size_t>(&step - plan_.batch_steps().data());
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].there) fields_[step.outputs[i]].unfinished->mix(number, rows, there[i]);
  }
  return {};
}

void Engine::note_groups(OpenBatch& batch) const {
  if (options_.plan->batch_steps().empty()) return;
  const int64_t group = options_.plan->batch_group(), rows = batch.builder.rows();
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
  const int64_t group = options_.plan->batch_group();
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
    Result<void> done = batch.builder.run_batch_steps(first, count, options_.seed);
    if (done) continue;
    const int64_t index = record_at(batch, static_cast<int>(first), 0);
    MutexLock lock(mutex_);
    batch.failures.push_back({.row = static_cast<int>(first),
                              .record = index,
                              .error = std::move(done.error()),
                              .fatal = true});
  }
  renderer.seconds().transform += now() - begin;
}

}  // namespace headrace
