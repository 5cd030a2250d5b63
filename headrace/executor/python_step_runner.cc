// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/python_step_runner.h"

#include <algorithm>
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

// Takes all waiting runs, or with several workers this one's part, oldest first. If there is no
// memory to divide them, `runs` has all of them: none keeps waiting for memory.
void PythonStepRunner::take_share(Runs& runs) {
  MutexLock lock(mutex_);
  runs.swap(waiting_);
  const auto share = (std::ssize(runs) + max_workers() - 1) / max_workers();
  Runs rest(runs.size() - static_cast<size_t>(share));
  std::move(runs.begin() + share, runs.end(), rest.begin());
  runs.resize(static_cast<size_t>(share));
  waiting_ = std::move(rest);
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
    take_share(runs);
    if (runs.empty()) return false;
    batches_.enter_python(runs);
    cross(runs);
  } catch (...) {
    for (auto& run : runs) {
      if (run) batches_.abandon(std::move(run), std::current_exception());
    }
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
