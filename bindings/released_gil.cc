// SPDX-License-Identifier: Apache-2.0
#include "bindings/released_gil.h"

#include <unistd.h>

#include <atomic>
#include <thread>

#include "bindings/bindings.h"

namespace headrace::python {
namespace {

std::atomic<std::thread::id> exiting_thread{};  // of none: no end is in sight
std::atomic<bool> exit_is_patient{false};

}  // namespace

void begin_exit(bool patient) {
  exit_is_patient = patient;
  exiting_thread = std::this_thread::get_id();
}

bool exits_patiently() { return exit_is_patient; }

void stay_away_at_exit() {
  const std::thread::id exiting = exiting_thread;
  if (exiting == std::thread::id() || exiting == std::this_thread::get_id()) return;
  nanobind::set_leak_warnings(false);  // of what the thread holds for good
  while (true) pause();
}

void check_signals() {
  stay_away_at_exit();
  nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace headrace::python
