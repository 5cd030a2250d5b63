// SPDX-License-Identifier: Apache-2.0
#include "bindings/released_gil.h"

#include <unistd.h>

#include <atomic>
#include <thread>

#include "bindings/bindings.h"
#include "headrace/base/clock.h"

namespace headrace::python {
namespace {

std::atomic<std::thread::id> exiting_thread{};  // none: no exit is in progress
std::atomic<bool> exit_waits_for_threads{false};
std::atomic<double> exit_began{0};
thread_local bool is_engine_thread = false;

}  // namespace

void begin_exit(bool patient) {
  exit_waits_for_threads = patient;
  exit_began = now();
  exiting_thread = std::this_thread::get_id();
}

bool exit_waits() { return exit_waits_for_threads; }

std::optional<double> seconds_of_hurried_exit() {
  if (exiting_thread.load() == std::thread::id() || exit_waits_for_threads) return std::nullopt;
  return now() - exit_began;
}

bool on_engine_thread() { return is_engine_thread; }

void sleep_if_exiting() {
  if (is_engine_thread) return;
  const std::thread::id exiting = exiting_thread;
  if (exiting == std::thread::id() || exiting == std::this_thread::get_id()) return;
  while (true) pause();
}

EngineGil::EngineGil()
    : is_outermost_(PyGILState_GetThisThreadState() == nullptr), state_(PyGILState_Ensure()) {
  if (!is_outermost_) return;
  is_engine_thread = true;
  signals_.emplace();
}

EngineGil::~EngineGil() {
  signals_.reset();
  if (is_outermost_) is_engine_thread = false;
  PyGILState_Release(state_);
}

void check_signals() {
  sleep_if_exiting();
  nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace headrace::python
