// SPDX-License-Identifier: Apache-2.0
#include <Python.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "bindings/loader_handle.h"
#include "bindings/released_gil.h"
#include "headrace/base/clock.h"
#include "headrace/base/mutex.h"

namespace headrace::python {
namespace {

constexpr double kPatience = 1, kHurried = 0.25, kHurriedExit = 0.5;

// Whether the caller is in an `except`, a `finally` or an `__exit__` reached by Ctrl-C.
bool handles_keyboard_interrupt() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_GetExcInfo(&type, &value, &trace);
  const bool is = value && PyErr_GivenExceptionMatches(value, PyExc_KeyboardInterrupt) != 0;
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  return is;
}

// Joined once it is done; abandoned if the caller gives up (or is interrupted).
struct Closer {
  std::thread thread;
  ~Closer() {
    if (thread.joinable()) thread.detach();
  }
};

struct Progress {
  Mutex mutex;
  Condition changed;
  bool done GUARDED_BY(mutex) = false;
};

}  // namespace

double closing_patience() {
  if (const std::optional<double> exiting = seconds_of_hurried_exit()) {
    return std::max(0.01, kHurriedExit - *exiting);
  }
  return handles_keyboard_interrupt() ? kHurried : kPatience;
}

bool finish_within(double seconds, std::function<void()> work,
                   const std::function<void()>& check_interrupt) {
  // shared: released by the caller that gave up or by the closer, whichever comes last.
  auto progress = std::make_shared<Progress>();
  Closer closer;
  try {
    closer.thread = std::thread([progress, work]() mutable {
      work();
      work = {};  // its captures are destroyed before others are notified
      MutexLock lock(progress->mutex);
      progress->done = true;
      progress->changed.notify_all();
    });
  } catch (const std::system_error&) {  // no thread can be created
    work();
    return true;
  }
  work = {};
  const double begin = now();
  while (true) {
    {
      MutexLock lock(progress->mutex);
      if (!progress->done) progress->changed.wait_for(progress->mutex, kWaitSlice);
      if (progress->done) break;
    }
    if (check_interrupt) check_interrupt();
    if (seconds > 0 && now() - begin > seconds) return false;
  }
  closer.thread.join();
  return true;
}

}  // namespace headrace::python
