// SPDX-License-Identifier: Apache-2.0
// What next() waits for, in words: the records that threads are at, the longest first.
#include <algorithm>

#include "headrace/base/clock.h"
#include "headrace/executor/engine.h"

namespace headrace {
namespace {

using Kind = RunActivity::Kind;

constexpr size_t kNamed = 3;  // activities, and records of one

struct Doing {
  Kind kind = Kind::kWaits;
  int step = -1;
  double since = 0;  // seconds of the steady clock
  std::vector<int64_t> records;
};

Doing doing_of(const RecordRun& run) {
  const RunActivity& activity = run.activity;
  Doing doing{.kind = activity.kind, .step = activity.step, .since = activity.since, .records = {}};
  if (doing.kind != Kind::kInPython) {
    doing.records = {activity.record};
    return doing;
  }
  // While a run is in Python's hands, only its calls change.
  for (int i = 0; i < run.rows.count; ++i) {
    const InFlight& flight = run.flight[i];
    const bool there = flight.at_python() && flight.step == doing.step;
    if (there) doing.records.push_back(flight.record.index);
  }
  return doing;
}

std::string text_of(const Source& source, const std::vector<int64_t>& records) {
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

std::string Engine::waits_for() const {
  std::vector<Doing> all;
  {
    MutexLock lock(mutex_);
    for (const RecordRun* run : active_) {
      Doing doing = doing_of(*run);
      if (doing.kind != Kind::kWaits && !doing.records.empty()) all.push_back(std::move(doing));
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Doing& a, const Doing& b) { return a.since < b.since; });
  if (all.size() > kNamed) all.resize(kNamed);
  std::string text;
  for (const Doing& doing : all) {
    const std::string records = text_of(*options_.task.source, doing.records);
    text += text.empty() ? "" : "; ";
    if (doing.kind == Kind::kReads) text += records + " to be read";
    if (doing.kind == Kind::kMakes) text += records + " to be decoded and transformed";
    if (doing.kind == Kind::kInPython)
      text += "a Python step, " + options_.task.plan->steps()[doing.step].label + ", to return " +
              records;
    if (doing.since > 0) text += ", for " + std::to_string(int(now() - doing.since)) + " s";
  }
  if (!text.empty()) return text;
  return has_python_steps_ ? "a Python step" : "reads or decoding";
}

}  // namespace headrace
