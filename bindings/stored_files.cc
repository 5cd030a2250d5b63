// SPDX-License-Identifier: Apache-2.0
#include "bindings/stored_files.h"

#include <nanobind/stl/tuple.h>

#include <string>
#include <utility>

namespace headrace::python {
namespace {

nb::list read(const StoredFiles& self, const std::vector<StoredRange>& ranges) {
  const std::vector<FileRange> checked = self.checked(ranges);
  RangeBytes bytes = waited_for([&] { return read_ranges(*self.set, checked); });
  if (!bytes) throw Exception(std::move(bytes.error()));
  nb::list out;
  for (Buffer& each : *bytes) out.append(array_from_bytes(std::move(each)));
  return out;
}

}  // namespace

std::vector<FileRange> StoredFiles::checked(const std::vector<StoredRange>& ranges) const {
  std::vector<FileRange> out;
  out.reserve(ranges.size());
  for (const auto& [file, offset, bytes] : ranges) {
    const int64_t at = checked_index(file, static_cast<int64_t>(set->size()), "files");
    out.push_back({static_cast<size_t>(at), offset, bytes});
  }
  return out;
}

nb::object array_from_bytes(Buffer bytes) {
  auto memory = std::make_shared<Buffer>(std::move(bytes));  // shared: Array's lease
  const auto size = static_cast<int64_t>(memory->size());
  return nb::cast(Array{{memory->data(), DType::kUInt8, {size}, {}}, memory});
}

void bind_stored_files(nb::module_& module) {
  nb::class_<StoredFiles>(module, "StoredFiles",
                          "Files of any storage, as they were when this was made.")
      .def(
          "__init__",
          [](StoredFiles* self, const nb::list& paths) {
            std::vector<std::string> all;
            for (nb::handle path : paths) all.push_back(bytes_from_str(path));
            new (self) StoredFiles{
                waited_for([&] { return std::make_shared<const FileSet>(std::move(all)); })};
          },
          nb::arg("paths"), nb::sig("def __init__(self, paths: list[str]) -> None"))
      .def_prop_ro(
          "later", [](const StoredFiles& self) { return self.set->is_async(); },
          "Whether a storage with a latency has one of them.")
      .def(
          "size",
          [](const StoredFiles& self, int64_t file) {
            const auto count = static_cast<int64_t>(self.set->size());
            return self.set->identity(static_cast<size_t>(checked_index(file, count, "files")))
                .size;
          },
          nb::arg("file"), "Bytes of a file.")
      .def("read", &read, nb::arg("ranges"),
           nb::sig("def read(self, ranges: Sequence[tuple[int, int, int]]) -> list[Array]"),
           "The bytes of ranges (file, offset, bytes), all requested at once. Raises HR0208 if a "
           "file was replaced, HR0205 if it ends before.");
}

}  // namespace headrace::python
