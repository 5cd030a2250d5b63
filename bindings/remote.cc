// SPDX-License-Identifier: Apache-2.0
// Remote storages: options of the process, and the provider of credentials.

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/bindings.h"
#include "headrace/base/mutex.h"
#include "headrace/base/per_process.h"
#include "headrace/storage/folder_entries.h"
#include "headrace/storage/remote/credentials.h"
#include "headrace/storage/remote/curl_functions.h"
#include "headrace/storage/remote/remote_options.h"
#include "headrace/storage/storage.h"

namespace headrace::python {
namespace {

// (key, secret, token, SAS, seconds since 1970 at which they expire, or 0)
using Provided =
    std::optional<std::tuple<std::string, std::string, std::string, std::string, double>>;

// Calls of the function, from any thread: when the interpreter exits, no further call starts, and
// those in progress are awaited, because a thread that returned later would abort the process.
struct Calls {
  Mutex mutex;
  Condition changed;
  int under_way GUARDED_BY(mutex) = 0;
  bool closed GUARDED_BY(mutex) = false;
};

Calls& calls() {
  static Calls* const all = new Calls;
  return *all;
}

Mutex& mutex_of_calls() { return calls().mutex; }

const int calls_over_fork = free_over_fork<mutex_of_calls>();

class Call {
 public:
  Call() {
    MutexLock lock(calls().mutex);
    if (calls().closed) throw std::runtime_error("Python ends");
    ++calls().under_way;
  }
  ~Call() {
    MutexLock lock(calls().mutex);
    if (--calls().under_way == 0) calls().changed.notify_all();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
};

std::optional<ProvidedKeys> keys_from(const nb::object& function) {
  const auto provided = nb::cast<Provided>(function());
  if (!provided) return {};
  const auto& [key, secret, token, query, expires] = *provided;
  return ProvidedKeys{.keys = {.key = key, .secret = secret, .token = token, .query = query},
                      .expires = expires};
}

void set_provider(const std::string& cloud, nb::object function) {
  auto* const held = new nb::object(std::move(function));  // permanent
  set_key_provider(cloud, [held]() -> std::optional<ProvidedKeys> {
    const Call call;
    const EngineGil gil;
    try {
      return keys_from(*held);
    } catch (const nb::python_error& raised) {
      if (!on_engine_thread()) throw;
      throw std::runtime_error(raised.what());  // does not need the GIL later
    }
  });
}

}  // namespace

void close_key_provider() {
  MutexLock lock(calls().mutex);
  calls().closed = true;
  while (calls().under_way > 0) calls().changed.wait(calls().mutex);
}

void bind_remote(nb::module_& module) {
  nb::class_<RemoteOptions>(module, "RemoteOptions",
                            "Options for reading remote storages; hr.remote.configure sets them.")
      .def(nb::init<>())
      .def_rw("connections", &RemoteOptions::connections)
      .def_rw("retries", &RemoteOptions::retries)
      .def_rw("retry_seconds", &RemoteOptions::retry_seconds)
      .def_rw("first_pause", &RemoteOptions::first_pause)
      .def_rw("longest_pause", &RemoteOptions::longest_pause)
      .def_rw("stall_seconds", &RemoteOptions::stall_seconds)
      .def_rw("least_rate", &RemoteOptions::least_rate)
      .def_rw("hedge", &RemoteOptions::hedge)
      .def_rw("hedge_seconds", &RemoteOptions::hedge_seconds)
      .def_rw("any_redirect", &RemoteOptions::any_redirect)
      .def_rw("ca_file", &RemoteOptions::ca_file)
      .def_rw("headers", &RemoteOptions::headers)
      .def_rw("endpoints", &RemoteOptions::endpoints)
      .def_rw("region", &RemoteOptions::region)
      .def_rw("addressing", &RemoteOptions::addressing)
      .def_rw("anonymous", &RemoteOptions::anonymous);
  module.def(
      "remote_options", [] { return RemoteOptions(*remote_options()); },
      "A copy of the current options.");
  module.def("set_remote_options", &set_remote_options, nb::arg("options"),
             "Sets the options of all later requests.");
  module.def("bytes_below", &bytes_below, nb::arg("path"), nb::call_guard<ReleasedGil>(),
             "Bytes of a file, or of all files below a folder, in any storage.");
  module.def(
      "curl_problem",
      [] {
        const auto curl = Curl::opened();
        return curl ? std::string() : curl.error().what;
      },
      "Why libcurl cannot be opened here; empty if it can.");
  module.def("set_key_provider", &set_provider, nb::arg("cloud"), nb::arg("function"),
             "Sets the function to call for credentials if the environment has none.");
  module.def(
      "scheme_of", [](const nb::str& path) { return std::string(scheme_of(bytes_from_str(path))); },
      nb::arg("path"), "The scheme of a path, before \"://\"; empty without one.");
}

}  // namespace headrace::python
