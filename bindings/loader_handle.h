// SPDX-License-Identifier: Apache-2.0
// The loader as Python holds it, for the files that hand its batches over.
#pragma once

#include "bindings/bindings.h"
#include "headrace/loader.h"

namespace headrace::python {

struct LoaderHandle {
  // shared: with the thread that closes it, with one that takes its batches to a device, and with
  // calls that are under way when somebody closes it. The GIL guards it.
  std::shared_ptr<Loader> loader;

  // Throws Exception HR0792 when it is closed. REQUIRES: the GIL.
  std::shared_ptr<Loader> get() const;
  // Calls `use` with the loader, without the GIL: the engine's locks may be held by a thread that
  // waits for it. Where the loader goes with this call, that is without it, too.
  template <class Use>
  auto with(Use&& use) const {
    std::shared_ptr<Loader> got = get();
    ReleasedGil no_gil;
    const std::shared_ptr<Loader> held = std::move(got);
    return use(*held);
  }
  // Where the interpreter ends in good order, it is waited for however long its threads take: they
  // may need the interpreter.
  void close(const std::function<void()>& interrupted = {});
  ~LoaderHandle() { close(); }
};

// Whoever drops it last waits a while for its threads; what is left goes on behind the caller's
// back.
std::shared_ptr<Loader> closed_patiently(std::unique_ptr<Loader> loader);

// What `wait(interrupted)` returns; nothing where `ended()`, asked every 50 ms, turns true.
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

// Throws Exception HR0792. `what`: "this loader".
[[noreturn]] void raise_closed(const char* what);

// An Array, or a list of values.
nb::object values_of(BatchField& field);
nb::dict dict_from_state(const LoaderState& state);

}  // namespace headrace::python
