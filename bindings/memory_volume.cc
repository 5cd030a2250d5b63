// SPDX-License-Identifier: Apache-2.0
// Files in memory that behave like remote storage, for tests and benchmarks.
#include <cerrno>
#include <memory>

#include "bindings/bindings.h"
#include "headrace/storage/memory_files.h"

namespace headrace::python {
namespace {

MemoryBehavior behavior_of(double latency_ms, double bytes_per_second, int64_t short_every,
                           int64_t error_every, double slow_ms) {
  return {.latency_seconds = latency_ms * 1e-3,
          .bytes_per_second = bytes_per_second,
          .fault = [=](const MemoryRequest& request) -> MemoryFault {
            const auto each = [&](int64_t every) {
              return every > 0 && request.number % every == every - 1;
            };
            return {.error_number = each(error_every) ? ECONNRESET : 0,
                    .most = each(short_every) ? (request.bytes + 1) / 2 : UINT64_MAX,
                    .extra_seconds = slow_ms > 0 && request.number == 0 ? slow_ms * 1e-3 : 0};
          }};
}

}  // namespace

void bind_memory_volume(nb::module_& module) {
  nb::class_<MemoryVolume>(
      module, "MemoryVolume",
      "In-memory files at memory://NAME with a configurable latency. For tests and benchmarks.")
      .def(
          "__init__",
          [](MemoryVolume* self, const std::string& name, double latency_ms,
             double bytes_per_second, int64_t short_every, int64_t error_every, double slow_ms) {
            new (self) MemoryVolume(
                name, behavior_of(latency_ms, bytes_per_second, short_every, error_every, slow_ms));
          },
          nb::arg("name"), nb::arg("latency_ms") = 0.0, nb::arg("bytes_per_second") = 0.0,
          nb::arg("short_every") = 0, nb::arg("error_every") = 0, nb::arg("slow_ms") = 0.0,
          "latency_ms: of each request. bytes_per_second: of all requests together (0: no limit). "
          "short_every, error_every: after how many requests one returns too few bytes, or a "
          "temporary error (0: never). slow_ms: additional time of the first request.")
      .def(
          "behave",
          [](MemoryVolume& self, double latency_ms, double bytes_per_second) {
            self.behave(behavior_of(latency_ms, bytes_per_second, 0, 0, 0));
          },
          nb::arg("latency_ms"), nb::arg("bytes_per_second") = 0.0,
          "Sets the latency and the rate of all later reads.")
      .def("copy_from", &MemoryVolume::copy_from, nb::arg("folder"), nb::call_guard<ReleasedGil>(),
           "Copies all files below a folder.")
      .def(
          "write",
          [](MemoryVolume& self, const std::string& path, const nb::bytes& content) {
            return self.write(
                path, std::span(static_cast<const uint8_t*>(content.data()), content.size()));
          },
          nb::arg("path"), nb::arg("content"), "Returns the file's whole path.")
      .def_prop_ro("root", &MemoryVolume::root)
      .def_prop_ro("requests", &MemoryVolume::requests,
                   "Number of requests that read bytes, so far.")
      .def_prop_ro("most_under_way", &MemoryVolume::most_under_way,
                   "Number of concurrent requests.");
}

}  // namespace headrace::python
