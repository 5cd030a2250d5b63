// SPDX-License-Identifier: Apache-2.0
#include "bindings/released_gil.h"

#include <unistd.h>

#include <atomic>
#include <thread>

#include "bindings/bindings.h"
#include "headrace/base/clock.h"

namespace headrace::python {
namespace {

std::atomic<std::thread::id> exiting_thread{};  // of none: no end is in sight
std::atomic<bool> exit_is_patient{false};
std::atomic<double> exit_began{0};

}  // namespace

void begin_exit(bool patient) {
  exit_is_patient = patient;
  exit_began = now();
  exiting_thread = std::this_thread::get_id();
}

bool exits_patiently() { return exit_is_patient; }

std::optional<double> seconds_of_hurried_exit() {
  if (exiting_thread.load() == std::thread::id() || exit_is_patient) return std::nullopt;
  return now() - exit_began;
}

void stay_away_at_exit() {
  const std::thread::id exiting = exiting_thread;
  if (exiting == std::thread::id() || exiting == std::this_thread::get_id()) return;
  while (true) pause();
}

void check_signals() {
  stay_away_at_exit();
  nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace headrace::python
