// SPDX-License-Identifier: Apache-2.0
// The loader as Python holds it, for the files that hand its batches over.
#pragma once

#include "bindings/bindings.h"
#include "headrace/loader.h"

namespace headrace::python {

struct LoaderHandle {
  // shared: with the thread that closes it, and with one that takes its batches to a device.
  std::shared_ptr<Loader> loader;

  // A copy: it stays while a call is under way, even if somebody closes it.
  std::shared_ptr<Loader> get() const;
  // What is left goes on behind the caller's back where it takes longer.
  void close(const std::function<void()>& interrupted = {});
  ~LoaderHandle() { close(); }
};

// An Array, or a list of values.
nb::object values_of(BatchField& field);
nb::dict dict_from_state(const LoaderState& state);

}  // namespace headrace::python
