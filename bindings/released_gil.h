// SPDX-License-Identifier: Apache-2.0
// Releasing the GIL, and returning to an interpreter that may be gone.
//
// Note [Why daemon threads stay away]: a thread that asks for the GIL while the interpreter ends is
// ended by it there (pthread_exit), and the unwinding of C++ frames aborts the process. So once the
// end has begun, threads other than the one that ends it sleep for good when they come back, as
// Python 3.14 has its own do. They hold no lock of the engine's then. The engine's own threads are
// joined before the interpreter ends, which would wait for ever for one that stayed away: steps and
// sources in Python that call Headrace themselves come back.
#pragma once

#include <Python.h>

#include <optional>

namespace headrace::python {

// From now on, for all threads but this one. `patient`: what still works is waited for.
void begin_exit(bool patient);
bool exits_patiently();
// Since it began, where it is not patient.
std::optional<double> seconds_of_hurried_exit();
// Whether the engine called Python on this thread, which it began.
bool on_engine_thread();
// Does not return where the interpreter ends, but on threads of the engine's. REQUIRES: neither the
// GIL nor a lock is held.
void stay_away_at_exit();

// In the place of nb::gil_scoped_release, wherever a call may wait.
class ReleasedGil {
 public:
  ReleasedGil() : state_(PyEval_SaveThread()) {}
  ~ReleasedGil() {
    stay_away_at_exit();
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

// In the place of nb::gil_scoped_acquire, where the engine calls Python.
class EngineGil {
 public:
  EngineGil();
  ~EngineGil();
  EngineGil(const EngineGil&) = delete;
  EngineGil& operator=(const EngineGil&) = delete;

 private:
  const bool is_outermost_;  // on a thread that the engine began
  const PyGILState_STATE state_;
};

}  // namespace headrace::python
