// SPDX-License-Identifier: Apache-2.0
// How remote storages are read: options of the process, and who is asked for credentials.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/bindings.h"
#include "headrace/storage/folder_entries.h"
#include "headrace/storage/remote/credentials.h"
#include "headrace/storage/remote/remote_options.h"

namespace headrace::python {
namespace {

// (key, secret, token, seconds since 1970 at which they expire, or 0)
using Provided = std::optional<std::tuple<std::string, std::string, std::string, double>>;

void set_provider(nb::object function) {
  auto* const held = new nb::object(std::move(function));  // for the life of the process
  set_key_provider([held]() -> std::optional<ProvidedKeys> {
    if (!Py_IsInitialized()) return {};
    const EngineGil gil;
    const auto provided = nb::cast<Provided>((*held)());
    if (!provided) return {};
    const auto& [key, secret, token, expires] = *provided;
    return ProvidedKeys{.keys = {.key = key, .secret = secret, .token = token}, .expires = expires};
  });
}

}  // namespace

void bind_remote(nb::module_& module) {
  nb::class_<RemoteOptions>(module, "RemoteOptions",
                            "How remote storages are read; hr.remote.configure sets them.")
      .def(nb::init<>())
      .def_rw("connections", &RemoteOptions::connections)
      .def_rw("retries", &RemoteOptions::retries)
      .def_rw("retry_seconds", &RemoteOptions::retry_seconds)
      .def_rw("first_pause", &RemoteOptions::first_pause)
      .def_rw("longest_pause", &RemoteOptions::longest_pause)
      .def_rw("stall_seconds", &RemoteOptions::stall_seconds)
      .def_rw("hedge", &RemoteOptions::hedge)
      .def_rw("hedge_seconds", &RemoteOptions::hedge_seconds)
      .def_rw("any_redirect", &RemoteOptions::any_redirect)
      .def_rw("ca_file", &RemoteOptions::ca_file)
      .def_rw("headers", &RemoteOptions::headers)
      .def_rw("endpoint", &RemoteOptions::endpoint)
      .def_rw("region", &RemoteOptions::region)
      .def_rw("addressing", &RemoteOptions::addressing)
      .def_rw("anonymous", &RemoteOptions::anonymous);
  module.def("remote_options", [] { return RemoteOptions(*remote_options()); }, "A copy of them.");
  module.def("set_remote_options", &set_remote_options, nb::arg("options"),
             "Those of requests from now on.");
  module.def("bytes_below", &bytes_below, nb::arg("path"), nb::call_guard<ReleasedGil>(),
             "Bytes of a file, or of all files below a folder, wherever they lie.");
  module.def("set_key_provider", &set_provider, nb::arg("function"),
             "Asked for keys of S3 when the environment names none.");
}

}  // namespace headrace::python
