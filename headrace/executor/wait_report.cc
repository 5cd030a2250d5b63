// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/wait_report.h"

#include <algorithm>

#include "headrace/base/clock.h"

namespace headrace {
namespace {

using Kind = RunActivity::Kind;

constexpr size_t kNamed = 3;  // maximum numbers of activities, and of records per activity

std::string names_of(const std::vector<int64_t>& records, const Source& source) {
  std::string text = records.size() == 1 ? "record " : "records ";
  for (size_t i = 0; i < std::min(records.size(), kNamed); ++i) {
    const std::string file = source.where(records[i]).file;
    text += (i ? ", " : "") + std::to_string(records[i]);
    if (!file.empty()) text += " (" + file + ")";
  }
  if (records.size() > kNamed) text += " and " + std::to_string(records.size() - kNamed) + " more";
  return text;
}

}  // namespace

RunStatus run_status(const RecordRun& run) {
  const RunActivity& activity = run.activity;
  RunStatus doing{.kind = activity.kind, .step = activity.step, .since = activity.since};
  if (doing.kind != Kind::kInPython) {
    doing.records = {activity.record};
    return doing;
  }
  // In the meantime only its calls change.
  for (int i = 0; i < run.rows.count; ++i) {
    const InFlight& flight = run.flight[size_t(i)];
    const bool is_there = flight.at_python() && flight.step == doing.step;
    if (is_there) doing.records.push_back(flight.record.index);
  }
  return doing;
}

std::string text_of(std::vector<RunStatus> all, const RowTask& task) {
  std::ranges::sort(all, {}, &RunStatus::since);
  if (all.size() > kNamed) all.resize(kNamed);
  std::string text;
  for (const RunStatus& doing : all) {
    const std::string records = names_of(doing.records, *task.source);
    text += text.empty() ? "" : "; ";
    if (doing.kind == Kind::kReads) text += records + " to be read";
    if (doing.kind == Kind::kMakes) text += records + " to be decoded and transformed";
    if (doing.kind == Kind::kInPython) {
      const std::string& step = task.plan->steps()[size_t(doing.step)].label;
      text += "a Python transform, " + step + ", to return " + records;
    }
    if (doing.since > 0) text += ", for " + std::to_string(int(now() - doing.since)) + " s";
  }
  if (!text.empty()) return text;
  return task.plan->has_python_steps() ? "a Python transform" : "reads or decoding";
}

}  // namespace headrace
