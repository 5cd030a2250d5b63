// SPDX-License-Identifier: Apache-2.0
// The loader as Python holds it, for the files that hand its batches over.
#pragma once

#include "bindings/bindings.h"
#include "headrace/loader.h"

namespace headrace::python {

// Throws Exception HR0792. `what`: "this loader".
[[noreturn]] void raise_closed(const char* what);

// A thing of the engine's with threads, as Python holds it until close(). The GIL guards it.
template <class T>
struct EngineHandle {
  // shared: with the thread that closes it, with one that takes its batches to a device, and with
  // calls that are under way when somebody closes it.
  std::shared_ptr<T> held;
  const char* what;  // "this loader"

  // Throws Exception HR0792 when it is closed. REQUIRES: the GIL.
  std::shared_ptr<T> get() const {
    if (!held) raise_closed(what);
    return held;
  }
  // Calls `use` with it, without the GIL: the engine's locks may be held by a thread that waits for
  // it. Where it goes with this call, that is without the GIL, too.
  template <class Use>
  auto with(Use&& use) const {
    std::shared_ptr<T> got = get();
    ReleasedGil no_gil;
    const std::shared_ptr<T> kept = std::move(got);
    return use(*kept);
  }
};

struct LoaderHandle : EngineHandle<Loader> {
  // Where the interpreter ends in good order, it is waited for however long its threads take: they
  // may need the interpreter.
  void close(const std::function<void()>& interrupted = {});
  ~LoaderHandle() { close(); }
};

// Result of `wait(interrupted)`; nothing once `ended()`, checked every 50 ms, is true.
template <class Wait>
auto unless_ended(const nb::callable& ended, Wait&& wait) {
  struct Ended {};
  const auto interrupted = [&] {
    check_signals();
    nb::gil_scoped_acquire gil;
    if (nb::cast<bool>(ended())) throw Ended{};
  };
  try {
    return wait(interrupted);
  } catch (const Ended&) {
    return decltype(wait(interrupted)){};
  }
}

// An Array, or a list of values.
nb::object values_of(BatchField& field);
nb::dict dict_from_state(const LoaderState& state);

}  // namespace headrace::python
