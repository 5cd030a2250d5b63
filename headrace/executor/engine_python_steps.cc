// SPDX-License-Identifier: Apache-2.0
// Runs whose pipeline has steps in Python: they stop at such a step, cross on the Python
// thread with all others that wait there, and go on. Where Python has workers (processes), each
// is waited for by a thread of its own that takes a share of the runs. No worker waits in here for
// memory, which might be held by records that only a worker can finish (Note [Why the memory limit
// cannot deadlock]); the run is put aside instead.
#include <iterator>
#include <map>

#include "headrace/base/clock.h"
#include "headrace/executor/engine.h"

namespace headrace {
namespace {

using State = InFlight::State;

}  // namespace

int Engine::process_with_python(RecordRun& run, Renderer& renderer) {
  if (!run.begun) {
    if (static_cast<int>(run.flight.size()) < run.rows) run.flight.resize(run.rows);
    for (int i = 0; i < run.rows; ++i) run.flight[i].state = State::kIdle;
    run.begun = true;
  }
  int settled = 0;
  bool lacks_memory = false;  // then the rows after it wait as well
  for (int i = 0; i < run.rows; ++i) {
    InFlight& flight = run.flight[i];
    if (flight.settled() || (lacks_memory && flight.state != State::kAtPython)) continue;
    try {
      go_on_with_python(run, i, renderer);
    } catch (const std::exception&) {
      fail_by_exception(run, i, 1);
    }
    settled += flight.settled();
    lacks_memory |= !flight.settled() && flight.state != State::kAtPython;
  }
  return settled;
}

// To the next Python step or the end; or until it finds no memory. A record that fails is begun
// again as its substitute.
void Engine::go_on_with_python(RecordRun& run, int i, Renderer& renderer) {
  InFlight& flight = run.flight[i];
  if (stopping_) return settle(run, i);  // the batch will not be handed over
  if (flight.state == State::kAtPython) return_from_python(run, i);
  while (!stopping_) {
    switch (flight.state) {
      case State::kIdle:
        if (flight.attempt == 0 && read_ahead_.is_full()) return;
        begin_record(run, i, renderer, /*may_wait=*/false);
        break;
      case State::kBegun:
        if (!reserve_now(run, i)) return;
        break;
      case State::kReady:
        advance_record(run, i, renderer);
        if (flight.state == State::kReady) write_records(run, i, 1, renderer);
        break;
      case State::kAtPython:
      case State::kBad:
      case State::kSettled:
        return;
    }
  }
  // Stopped on the way: left as it is, the run would be put aside for memory that nobody frees.
  if (flight.state != State::kAtPython && !flight.settled()) settle(run, i);
}

void Engine::return_from_python(RecordRun& run, int i) {
  InFlight& flight = run.flight[i];
  flight.state = State::kReady;
  PythonCall call = std::move(*flight.call);
  flight.call.reset();
  if (!call.result) return fail(run, i, std::move(call.result.error()));
  Result<void> returned = options_.task.plan->python_return(flight.step, call, flight.record);
  if (!returned) return fail(run, i, std::move(returned.error()));
  ++flight.step;
}

// Everything up to the end is reserved at once: while it waits at a Python step a record must not
// ask for more. False when the memory is not free now.
bool Engine::reserve_now(RecordRun& run, int i) {
  InFlight& flight = run.flight[i];
  const size_t bytes = bytes_until_written(flight);
  if (gate_.refuses(bytes)) {
    fail(run, i, gate_.refusal(bytes));
    return true;
  }
  std::optional<GateHold> hold = gate_.try_acquire(bytes);
  if (!hold) return false;
  flight.reserved = std::move(*hold);
  flight.state = State::kReady;
  return true;
}

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
    run->activity->step = -1;
    run->activity->kind = RunActivity::Kind::kInPython;
  }
  return runs;
}

void Engine::call_python(int step, std::span<PythonCall* const> calls) {
  PythonFunction& function = *options_.task.plan->steps()[step].function;
  if (options_.python_workers > 0) return function.call(calls);
  MutexLock lock(python_mutex_);
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
    for (int i = 0; i < run->rows && !stopping_; ++i) {
      InFlight& flight = run->flight[i];
      if (flight.state == State::kAtPython) by_step[flight.step].push_back(&*flight.call);
    }
  }
  for (auto& [step, calls] : by_step) {
    for (const auto& run : runs) {
      run->activity->step = step;
      run->activity->since = now();
    }
    call_python(step, calls);
  }
  MutexLock lock(mutex_);
  stats_.stages.python += now() - begin;
  for (auto& run : runs) {
    run->activity->kind = RunActivity::Kind::kWaits;
    continued_.push_back(std::move(run));
  }
}

}  // namespace headrace
