// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/decode_trial.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <vector>

#include "headrace/base/clock.h"
#include "headrace/executor/batch/batch_builder.h"
#include "headrace/executor/memory/slots.h"

namespace headrace {
namespace {

constexpr int64_t kRecords = 64, kAtOnce = 8;
constexpr double kMaxSeconds = 0.5;

// Steps that are only applied when batches are made.
bool is_skipped(const Plan& plan, int at) {
  return plan.steps()[size_t(at)].kind == Step::Kind::kPython || at == plan.partner_step();
}

bool touches(const Step& step, int field) {
  return std::ranges::count(step.fields, field) || std::ranges::count(step.output_fields, field);
}

// Outputs that a device could decode except for a step that is skipped here.
int64_t rendered_before(const Plan& plan, const DeviceWork& left) {
  int64_t count = 0;
  for (size_t i = 0; i < plan.outputs().size(); ++i) {
    if (!left.decodes(i)) continue;
    for (int at = 0; at < std::ssize(plan.steps()); ++at) {
      if (!is_skipped(plan, at) || !touches(plan.steps()[size_t(at)], plan.outputs()[i].field))
        continue;
      ++count;
      break;
    }
  }
  return count;
}

// Runs a record to the end of its steps; false if it is bad.
bool make(const RowTask& task, int64_t index, int64_t position, const std::vector<bool>& by_range,
          const DeviceDecoding& log, RecordData& data, Record& record, Renderer& renderer) {
  const Plan& plan = *task.plan;
  const int end = int(std::ssize(plan.steps()));
  data.by_range = &by_range;
  task.source->read({&index, 1}, plan.wanted(), {&data, 1});
  if (!data.result) return false;
  record.index = index;
  record.position = position;
  if (!plan.begin(data, record, renderer)) return false;
  mark_for_device(record, log);
  for (int at = 0; at < end; ++at) {
    const int stop = at <= plan.partner_step() ? plan.partner_step() : end;
    const Result<int> stopped = plan.advance(at, record, renderer, task.seed, 0, stop);
    if (!stopped) return false;
    at = *stopped;
  }
  return true;
}

}  // namespace

DeviceDecoding::Counts trial_decode_counts(const RowTask& task) {
  const Plan& plan = *task.plan;
  const std::vector<bool> by_range = plan.by_range();
  const auto memory = [](size_t, size_t bytes) { return make_values(bytes); };
  const int64_t records = std::min(kRecords, task.source->size());
  DeviceDecoding::Counts counts{};
  if (const int64_t made = rendered_before(plan, task.left); made > 0) {
    counts[size_t(DeviceDecoding::Place::kPixels)] = made * records;
    return counts;
  }
  const auto log = std::make_shared<DeviceDecoding>();
  const double until = now() + kMaxSeconds;
  Renderer renderer;
  for (int64_t first = 0; first < records && (first == 0 || now() < until); first += kAtOnce) {
    const BatchRange range{first, std::min(first + kAtOnce, records)};
    BatchBuilder rows(plan, *task.source, 0, 0, range, memory,
                      {.left = task.left, .finished = memory, .decoding = log});
    for (int64_t i = range.begin; i < range.end; ++i) {
      RecordData data;
      Record record;
      const int64_t index = task.source->size() * i / records;
      try {
        if (!make(task, index, i, by_range, *log, data, record, renderer)) continue;
        RowSource source{.row = int(i - range.begin), .record = &record, .result = {}};
        rows.write({&source, 1}, renderer);
      } catch (const std::exception&) {  // the loader reports it when it reaches this record
        continue;
      }
    }
  }
  return log->counts();
}

}  // namespace headrace
