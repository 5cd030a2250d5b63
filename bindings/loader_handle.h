// SPDX-License-Identifier: Apache-2.0
// The loader as Python holds it, for the files that deliver its batches; and how it is closed.
#pragma once

#include <functional>

#include "bindings/bindings.h"
#include "headrace/loader.h"

namespace headrace::python {

// Throws Exception HR0792. `what`: "this loader".
[[noreturn]] void raise_closed(const char* what);

// An engine object with threads, as held by Python until close(). Guarded by the GIL.
template <class T>
struct EngineHandle {
  // shared: with the thread that closes it, with one that copies its batches to a device, and with
  // calls in progress while it is closed.
  std::shared_ptr<T> held;
  const char* what;  // "this loader"

  // Throws Exception HR0792 if it is closed. REQUIRES: the GIL.
  std::shared_ptr<T> get() const {
    if (!held) raise_closed(what);
    return held;
  }
  // Calls `use` with it, without the GIL: the engine's locks may be held by a thread that waits for
  // the GIL. If this call destroys the object, that happens without the GIL, too.
  template <class Use>
  auto with(Use&& use) const {
    std::shared_ptr<T> got = get();
    ReleasedGil no_gil;
    const std::shared_ptr<T> kept = std::move(got);
    return use(*kept);
  }
};

struct LoaderHandle : EngineHandle<Loader> {
  // If the interpreter exits normally, waits for its threads without a limit: they may need the
  // interpreter.
  void close(const std::function<void()>& check_interrupt = {});
  ~LoaderHandle() { close(); }
};

// The result of `wait(check_interrupt)`; an empty one if `ended()`, checked every 50 ms, returns
// true.
template <class Wait>
auto while_not_ended(const nb::callable& ended, Wait&& wait) {
  struct Ended {};
  const auto check_interrupt = [&] {
    check_signals();
    nb::gil_scoped_acquire gil;
    if (nb::cast<bool>(ended())) throw Ended{};
  };
  try {
    return wait(check_interrupt);
  } catch (const Ended&) {
    return decltype(wait(check_interrupt)){};
  }
}

// An Array, or a list of values.
nb::object values_of(BatchField& field);
nb::dict dict_from_state(const LoaderState& state);

// --- Closing objects that wait for threads, without waiting forever (closing.cc) ---
//
// Note [Why loaders are closed by a thread of their own]: closing joins the engine's work, and a
// Python step or source may hang (a dead network file system, a deadlock in the user's code).
// Ctrl-C must end the process nevertheless, so the caller waits a while and then leaves the rest to
// the closer. After Ctrl-C, all of this takes well below a second.

// Seconds, never 0, that closing waits for work that may never end; during interpreter exit after
// Ctrl-C, the time remaining. REQUIRES: the GIL.
double closing_patience();

// Runs `work` on a separate thread; true if it was done within `seconds` (0: no limit).
// `check_interrupt`, called every 50 ms while it waits, may throw. REQUIRES: the GIL is not held.
bool finish_within(double seconds, std::function<void()> work,
                   const std::function<void()>& check_interrupt = {});

}  // namespace headrace::python
