// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/runs.h"

#include <algorithm>
#include <utility>

#include "headrace/base/clock.h"

namespace headrace {
namespace {

// A run should last about this long: short enough to balance the end of an epoch, long enough that
// claiming costs nothing.
constexpr double kRunSeconds = 4e-3;
constexpr int kLongestRun = 256;
constexpr size_t kSpareRuns = 256;  // kept for reuse
// Near the end of a batch the rest is divided among threads, but not into pieces so small that a
// decoder of several lanes cannot fill them.
constexpr int kMinShare = 8;

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

Runs::Runs(int threads, int python_workers, int64_t batch_rows, bool lends)
    : threads_(threads), python_workers_(python_workers), batch_rows_(batch_rows), lends_(lends) {
  spare_.reserve(kSpareRuns);
}

int Runs::length_of(int rows) const {
  const int fair = std::max<int>(1, (rows + threads_ - 1) / threads_);
  const double seconds = record_seconds_ + (lends_ ? python_seconds_ : 0);
  const int long_enough =
      static_cast<int>(std::clamp(kRunSeconds / seconds, 1.0, double{kLongestRun}));
  const int length = std::min({rows, std::max(fair, kMinShare), long_enough});
  if (python_workers_ == 0) return length;
  // A run is given to one worker as a whole.
  const int batch = static_cast<int>(batch_rows_);
  return std::min(length, std::max(1, batch / (2 * python_workers_)));
}

std::unique_ptr<RecordRun> Runs::begin(OpenBatch& batch, BatchBuilder& to, Rows rows) {
  std::unique_ptr<RecordRun> run;
  if (spare_.empty()) {
    run = std::make_unique<RecordRun>();
  } else {
    run = std::move(spare_.back());
    spare_.pop_back();
  }
  run->begun = false;
  run->to = &to;
  run->of = &batch;
  run->rows = rows;
  run->rows.count = length_of(rows.count);
  active_.push_back(run.get());
  return run;
}

std::unique_ptr<RecordRun> Runs::take_on() {
  for (auto* queue : {&continued_, &parked_}) {
    if (queue->empty()) continue;
    std::unique_ptr<RecordRun> run = std::move(queue->front());
    queue->pop_front();
    return run;
  }
  return nullptr;
}

void Runs::end(std::unique_ptr<RecordRun> run) {
  std::erase(active_, run.get());
  if (spare_.size() < spare_.capacity()) spare_.push_back(std::move(run));
}

void Runs::note(const RowsReport& report) {
  if (report.settled == 0) return;
  record_seconds_ += (report.seconds / report.settled - record_seconds_) / 4;
}

void Runs::note_python(const std::vector<std::unique_ptr<RecordRun>>& runs, double seconds) {
  int rows = 0;
  for (const auto& run : runs) rows += run->rows.count;
  if (rows > 0) python_seconds_ += (seconds / rows - python_seconds_) / 4;
}

// Note [Rows are claimed just in time for Python]
// Rows that are claimed cannot be lent. If Python steps are slower than decoding, threads would
// claim all rows of the open batches for a queue in front of Python, and leave nothing to other
// processes, which have a Python of their own. So an engine that lends claims new rows only while
// that queue is shorter than Python's workers, in runs that are short in Python as well.
bool Runs::suffice_for_python() const {
  const auto waits = [](const RecordRun* run) { return run->activity.kind == Kind::kForPython; };
  return std::ranges::count_if(active_, waits) >= std::max(1, python_workers_);
}

std::vector<RunStatus> Runs::doing() const {
  std::vector<RunStatus> all;
  for (const RecordRun* run : active_) {
    RunStatus doing = run_status(*run);
    if (!doing.records.empty()) all.push_back(std::move(doing));
  }
  return all;
}

RunStatus run_status(const RecordRun& run) {
  const RunActivity& activity = run.activity;
  RunStatus doing{.kind = activity.kind, .step = activity.step, .since = activity.since};
  if (doing.kind == Kind::kReads || doing.kind == Kind::kMakes) doing.records = {activity.record};
  if (doing.kind != Kind::kInPython) return doing;
  // In the meantime only its calls change.
  for (int i = 0; i < run.rows.count; ++i) {
    const InFlight& flight = run.flight[size_t(i)];
    const bool is_there = flight.at_python() && flight.step == doing.step;
    if (is_there) doing.records.push_back(flight.record.index);
  }
  return doing;
}

std::string wait_text(std::vector<RunStatus> all, const RowTask& task) {
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
