// SPDX-License-Identifier: Apache-2.0
// Making the row index of a dataset.
#include "bindings/bindings.h"
#include "headrace/sources/row_index/build_row_index.h"

namespace headrace::python {
namespace {

nb::dict build(const SourceHandle& source, const nb::str& file, int threads, nb::handle progress) {
  const std::string path = bytes_from_str(file);
  const Progress report = progress_from(progress);
  BuiltRowIndex built;
  {
    ReleasedGil no_gil;
    built = build_row_index(source.source, path, threads, report);
  }
  nb::dict out;
  out["file"] = str_from_bytes(built.file);
  out["records"] = built.records;
  out["pictures"] = built.pictures;
  out["indexed"] = built.indexed;
  out["bad"] = built.bad;
  out["picture_bytes"] = built.picture_bytes;
  out["bytes"] = built.file_bytes;
  return out;
}

}  // namespace

void bind_row_index(nb::module_& module) {
  module.def("build_row_index", &build, nb::arg("source"), nb::arg("file"), nb::arg("threads"),
             nb::arg("progress").none(),
             nb::sig("def build_row_index(source: Source, file: str, threads: int, progress: "
                     "collections.abc.Callable[[int, int], object] | None) -> dict[str, "
                     "typing.Any]"),
             "Empty `file`: the dataset's own in the cache. threads 0: the allowed cores.");
}

}  // namespace headrace::python
