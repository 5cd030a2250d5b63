// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/python_step_runner.h"

#include <iterator>
#include <map>
#include <utility>

#include "headrace/base/clock.h"

namespace headrace {

PythonStepRunner::PythonStepRunner(const RowTask& task, OpenBatches& batches, int workers,
                                   std::function<void()> wake, const std::atomic<bool>& stop)
    : task_(task), batches_(batches), workers_(workers), wake_(std::move(wake)), stop_(stop) {}

ThreadPool& PythonStepRunner::threads() const {
  return workers_ > 0 ? ThreadPool::python_workers() : ThreadPool::python();
}

void PythonStepRunner::add(std::unique_ptr<RecordRun>& run) {
  {
    MutexLock lock(mutex_);
    waiting_.push_back(std::move(run));
  }
  threads().wake(max_workers());
}

// Takes all waiting runs, or with several workers this one's part, oldest first.
PythonStepRunner::Runs PythonStepRunner::take_share() {
  MutexLock lock(mutex_);
  const auto share = std::ssize(waiting_) + max_workers() - 1;
  const auto end = waiting_.begin() + share / max_workers();
  Runs runs(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(end));
  waiting_.erase(waiting_.begin(), end);
  for (const auto& run : runs) {
    run->activity.step = -1;
    run->activity.kind = RunActivity::Kind::kInPython;
  }
  return runs;
}

void PythonStepRunner::call(int step, std::span<PythonCall* const> calls) {
  PythonFunction& function = *task_.plan->steps()[size_t(step)].function;
  if (workers_ > 0) return function.call(calls);
  MutexLock lock(call_mutex_);
  function.call(calls);
}

bool PythonStepRunner::work(Renderer&) {
  Runs runs;
  try {
    runs = take_share();
    if (runs.empty()) return false;
    cross(runs);
  } catch (...) {
    for (auto& run : runs) {
      if (run) batches_.abandon(std::move(run), std::current_exception());
    }
    // Runs that could not be taken are still waiting.
    if (runs.empty()) batches_.abandon(nullptr, std::current_exception());
  }
  wake_();
  return true;
}

// Calls the steps that the runs have reached, and sends the runs back.
void PythonStepRunner::cross(Runs& runs) {
  const double begin = now();
  std::map<int, std::vector<PythonCall*>> by_step;
  for (auto& run : runs) {
    for (int i = 0; i < run->rows.count && !stop_; ++i) {
      InFlight& flight = run->flight[size_t(i)];
      if (flight.at_python()) by_step[flight.step].push_back(&*flight.call);
    }
  }
  for (auto& [step, calls] : by_step) {
    for (const auto& run : runs) {
      run->activity.step = step;
      run->activity.since = now();
    }
    call(step, calls);
  }
  batches_.go_on(runs, now() - begin);
}

}  // namespace headrace
