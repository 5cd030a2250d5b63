// SPDX-License-Identifier: Apache-2.0
// Releasing the GIL, and returning to an interpreter that may have exited.
//
// Note [Why daemon threads stay away]: a thread that requests the GIL while the interpreter exits
// is terminated there (pthread_exit), and the unwinding of C++ frames aborts the process. So once
// the exit has begun, all threads except the exiting one sleep forever when they return, like
// Python 3.14's own. They hold no engine lock then. The engine's own threads are joined before the
// interpreter exits, and joining one that sleeps would wait forever: so they do return, for example
// from Python steps and sources that call Headrace.
#pragma once

#include <Python.h>

#include <optional>

#include "headrace/base/signals.h"

namespace headrace::python {

// Begins the exit: from now on, all threads except this one stay away. `patient`: the exit waits
// for threads that are still working.
void begin_exit(bool patient);
bool exit_waits();
// Time since the exit began, if it is not patient.
std::optional<double> seconds_of_hurried_exit();
// Whether this is an engine thread on which the engine called Python.
bool on_engine_thread();
// Does not return while the interpreter exits, except on engine threads. REQUIRES: neither the GIL
// nor a lock is held.
void sleep_if_exiting();

// Replaces nb::gil_scoped_release wherever a call may wait.
class ReleasedGil {
 public:
  ReleasedGil() : state_(PyEval_SaveThread()) {}
  ~ReleasedGil() {
    sleep_if_exiting();
    PyEval_RestoreThread(state_);
  }
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;

 private:
  PyThreadState* state_;
};

// Result of `call`, which may read from a remote storage, without the GIL.
template <class Call>
auto waited_for(const Call& call) {
  const ReleasedGil no_gil;
  return call();
}

// Replaces nb::gil_scoped_acquire where the engine calls Python.
class EngineGil {
 public:
  EngineGil();
  ~EngineGil();
  EngineGil(const EngineGil&) = delete;
  EngineGil& operator=(const EngineGil&) = delete;

 private:
  const bool is_outermost_;  // on a thread started by the engine
  const PyGILState_STATE state_;
  std::optional<StarterSignalMask> signals_;  // only with the GIL: a waiting thread sees Ctrl-C
};

}  // namespace headrace::python
