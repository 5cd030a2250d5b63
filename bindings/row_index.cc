// SPDX-License-Identifier: Apache-2.0
// Makes indexes of a dataset: row indexes, and indexes stored next to the data.
#include "bindings/bindings.h"
#include "headrace/formats/shards/container_index.h"
#include "headrace/sources/row_index/build_row_index.h"
#include "headrace/sources/subset.h"
#include "headrace/storage/bucket.h"

namespace headrace::python {
namespace {

nb::dict build(const SourceHandle& source, const nb::str& file, int threads, nb::handle progress,
               int64_t part, int64_t parts) {
  const std::string path = bytes_from_str(file);
  const Progress report = progress_from(progress);
  BuiltRowIndex built;
  {
    ReleasedGil no_gil;
    built = build_row_index(source.source, path, threads, report, {part, parts});
  }
  nb::dict out;
  out["file"] = str_from_bytes(built.file);
  out["first"] = built.first;
  out["records"] = built.records;
  out["images"] = built.pictures;
  out["indexed"] = built.indexed;
  out["bad"] = built.bad;
  out["image_bytes"] = built.picture_bytes;
  out["bytes"] = built.file_bytes;
  return out;
}

SourceHandle indexed(const SourceHandle& source) {
  SourcePtr out;
  with_viewed(source.source, [&](const SourcePtr& viewed) { return out = viewed; });
  return SourceHandle{std::move(out)};
}

void join(const std::vector<std::string>& parts, const nb::str& file) {
  const std::string path = bytes_from_str(file);
  ReleasedGil no_gil;
  join_row_indexes(parts, path);
}

nb::list all_sidecars(const SourceHandle& source) {
  std::vector<IndexSidecar> all;
  {
    ReleasedGil no_gil;
    all = index_sidecars(*source.source);
  }
  nb::list out;
  for (const IndexSidecar& one : all) {
    out.append(
        nb::make_tuple(str_from_bytes(one.path), nb::bytes(one.bytes.data(), one.bytes.size())));
  }
  return out;
}

bool store(const nb::str& given, const nb::bytes& content) {
  const std::string path = bytes_from_str(given);
  std::string bytes(content.c_str(), content.size());
  ReleasedGil no_gil;
  Result<bool> stored = store_in_bucket(path, std::move(bytes));
  if (!stored) throw Exception(std::move(stored.error()));
  return *stored;
}

}  // namespace

void bind_row_index(nb::module_& module) {
  module.def("indexes_next_to_data", &all_sidecars, nb::arg("source"),
             nb::sig("def indexes_next_to_data(source: Source) -> list[tuple[str, bytes]]"),
             "Paths of the indexes of a source's remote containers next to the data, and their "
             "bytes.");
  module.def("store", &store, nb::arg("path"), nb::arg("content"),
             nb::sig("def store(path: str, content: bytes) -> bool"),
             "Writes a new file; False if the file already exists, which is then kept.");
  module.def("build_row_index", &build, nb::arg("source"), nb::arg("file"), nb::arg("threads"),
             nb::arg("progress").none(), nb::arg("part") = 0, nb::arg("parts") = 1,
             nb::sig("def build_row_index(source: Source, file: str, threads: int, progress: "
                     "collections.abc.Callable[[int, int], object] | None, part: int = 0, parts: "
                     "int = 1) -> dict[str, typing.Any]"),
             "Empty `file`: the dataset's own in the cache. threads 0: the allowed cores.");
  module.def("indexed_source", &indexed, nb::arg("source"),
             "The source to index for this one: for a subset, the source it is part of.");
  module.def("join_row_indexes", &join, nb::arg("parts"), nb::arg("file"),
             nb::sig("def join_row_indexes(parts: collections.abc.Sequence[str], file: str) -> "
                     "None"),
             "Joins the indexes of all parts, in order, into one.");
}

}  // namespace headrace::python
