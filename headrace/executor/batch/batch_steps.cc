// SPDX-License-Identifier: Apache-2.0
// Batch steps on filled rows (Note [Groups of positions] in ops/op.h).
#include <algorithm>

#include "headrace/executor/batch/batch_builder.h"

namespace headrace {

Result<void> BatchBuilder::run_batch_steps(int64_t first, int64_t count, uint64_t seed) {
  for (const BatchStep& step : rows_.plan.batch_steps()) {
    const int64_t group = step.op->group(), end = first + count;
    for (int64_t row = first; row < end; row += group) {
      Result<void> done = run_batch_step(step, row, std::min(group, end - row), seed);
      if (done) continue;
      if (done.error().note.empty()) done.error().note = "in the batch transform " + step.label;
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
    positions.push_back(rows_.range.begin + row);
    for (size_t i = 0; i < fields.size(); ++i) {
      const OutputMemory& memory = rows_.fields[step.outputs[i]];
      if (memory.unfinished) continue;
      fields[i].rows.push_back(memory.data + memory.row_bytes * row);
    }
  }
  if (positions.empty()) return {};
  // Seeded by the group's first position, regardless of which of its rows exist.
  const auto draws = [&](uint64_t key) {
    return Draws(seed, static_cast<uint64_t>(epoch_),
                 static_cast<uint64_t>(rows_.range.begin + first), key);
  };
  for (const BatchCondition& condition : step.conditions) {
    const std::vector<int> taken = condition.selection.draw(draws(condition.key));
    if (!std::ranges::count(taken, condition.list)) return {};
  }
  std::vector<std::vector<RowMix>> there(fields.size());
  std::vector<FieldState> states(fields.size());
  for (size_t i = 0; i < fields.size(); ++i) {
    const Output& output = rows_.plan.outputs()[step.outputs[i]];
    states[i] = output.picture();
    if (output.is_clip()) fields[i].pictures = std::ssize(output.pictures);
    fields[i].state = &states[i];
    fields[i].row_bytes = output.bytes_per_record;
    if (rows_.fields[step.outputs[i]].unfinished) fields[i].there = &there[i];
  }
  GroupContext context{fields, positions, rows_.plan.options().memory_format, draws(step.key)};
  if (Result<void> done = step.op->apply(context); !done) return done;
  const auto number = static_cast<size_t>(&step - rows_.plan.batch_steps().data());
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].there) rows_.fields[step.outputs[i]].unfinished->mix(number, rows, there[i]);
  }
  return {};
}

}  // namespace headrace
