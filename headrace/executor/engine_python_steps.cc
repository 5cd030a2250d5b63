// SPDX-License-Identifier: Apache-2.0
// Runs whose pipeline has steps in Python: they stop at such a step, cross on the Python
// thread with all others that wait there, and go on. Where Python has workers (processes), each
// is waited for by a thread of its own that takes a share of the runs.
#include <iterator>
#include <map>

#include "headrace/base/clock.h"
#include "headrace/executor/engine.h"

namespace headrace {
ThreadPool& Engine::python_threads() const {
  return options_.python_workers > 0 ? ThreadPool::python_workers() : ThreadPool::python();
}

// All that waits; with several workers their part of it, the oldest first.
std::vector<std::unique_ptr<RecordRun>> Engine::take_python_share() {
  const size_t workers = static_cast<size_t>(std::max(1, options_.python_workers));
  MutexLock lock(mutex_);
  const auto end = at_python_.begin() + ptrdiff_t((at_python_.size() + workers - 1) / workers);
  std::vector<std::unique_ptr<RecordRun>> runs(std::make_move_iterator(at_python_.begin()),
                                               std::make_move_iterator(end));
  at_python_.erase(at_python_.begin(), end);
  for (const auto& run : runs) {
    run->activity.step = -1;
    run->activity.kind = RunActivity::Kind::kInPython;
  }
  return runs;
}

void Engine::PythonSide::call(int step, std::span<PythonCall* const> calls) {
  PythonFunction& function = *engine_.options_.task.plan->steps()[step].function;
  if (engine_.options_.python_workers > 0) return function.call(calls);
  MutexLock lock(engine_.python_mutex_);
  function.call(calls);
}

bool Engine::python_work(Renderer&) {
  std::vector<std::unique_ptr<RecordRun>> runs;
  try {
    runs = take_python_share();
    if (runs.empty()) return false;
    cross(runs);
  } catch (...) {
    for (auto& run : runs) {
      if (run) break_off(std::move(run));
    }
    // Runs that nobody could take are still there.
    if (runs.empty()) break_off(nullptr);
  }
  ThreadPool::workers().wake(options_.threads);
  return true;
}

// Calls the steps at which the runs stand, and sends them back.
void Engine::cross(std::vector<std::unique_ptr<RecordRun>>& runs) {
  const double begin = now();
  std::map<int, std::vector<PythonCall*>> by_step;
  for (auto& run : runs) {
    for (int i = 0; i < run->rows.count && !stopping_; ++i) {
      InFlight& flight = run->flight[i];
      if (flight.at_python()) by_step[flight.step].push_back(&*flight.call);
    }
  }
  for (auto& [step, calls] : by_step) {
    for (const auto& run : runs) {
      run->activity.step = step;
      run->activity.since = now();
    }
    python_side_.call(step, calls);
  }
  MutexLock lock(mutex_);
  stats_.stages.python += now() - begin;
  for (auto& run : runs) {
    run->activity.kind = RunActivity::Kind::kWaits;
    continued_.push_back(std::move(run));
  }
}

}  // namespace headrace
