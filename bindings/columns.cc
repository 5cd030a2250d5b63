// SPDX-License-Identifier: Apache-2.0
// Sources made of columns (headrace.records), and views of sources.
#include "headrace/sources/columns/columns.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <tuple>
#include <utility>

#include "bindings/bindings.h"
#include "headrace/formats/folder/record_files.h"

namespace headrace::python {
namespace {

struct ColumnList {
  std::vector<Column> columns;
};

// The array is borrowed for as long as any view of the source lives, not copied.
void add_array(ColumnList& self, std::string name, nb::object array, nb::object keep,
               std::vector<std::string> classes, std::optional<std::string> kind) {
  const TensorView view = borrowed_view(array);
  auto owner = std::make_shared<OwnedObject>(nb::make_tuple(array, keep));
  Column& column = self.columns.emplace_back();
  column.name = std::move(name);
  column.values = ArrayColumn{view.data, view.dtype, view.shape.at(0),
                              Shape(view.shape.begin() + 1, view.shape.end()), owner};
  if (!classes.empty()) column.kind = FieldKind::kLabel;
  if (kind) column.kind = kind_from_name(*kind);
  column.classes = std::move(classes);
}

// (data, its bytes, offsets, whether they are int64, count, valid bits or 0, the first bit of
// them, file); places are addresses of memory that `keep` keeps, that of the data in a file where
// one is numbered, and not -1.
using Part = std::tuple<uintptr_t, uint64_t, uintptr_t, bool, int64_t, uintptr_t, int64_t, int>;

void add_blobs(ColumnList& self, std::string name, std::string_view kind, DType dtype,
               const std::vector<Part>& parts, nb::object keep, const nb::list& files) {
  BlobColumn column{
      .parts = {}, .dtype = dtype, .owner = std::make_shared<OwnedObject>(std::move(keep))};
  std::vector<std::string> paths;
  for (nb::handle path : files) paths.push_back(bytes_from_str(path));
  if (!paths.empty()) column.files = std::make_shared<const FileSet>(std::move(paths));
  for (const auto& [data, bytes, offsets, wide, count, valid, first_bit, file] : parts) {
    const bool in_file = file >= 0;
    column.parts.push_back({.data = in_file ? nullptr : reinterpret_cast<const uint8_t*>(data),
                            .data_bytes = bytes,
                            .offsets = reinterpret_cast<const void*>(offsets),
                            .wide = wide,
                            .count = count,
                            .valid = reinterpret_cast<const uint8_t*>(valid),
                            .first_bit = first_bit,
                            .file = file,
                            .position = in_file ? data : 0});
  }
  self.columns.push_back({std::move(name), std::move(column), kind_from_name(kind)});
}

}  // namespace

void bind_columns(nb::module_& module) {
  module.def(
      "suffix_of_files",
      [](const nb::list& paths, const nb::str& root, bool required, bool is_columns) {
        const auto name_at = [&](int64_t i) { return bytes_from_str(nb::str(paths[i])); };
        return suffix_of_records(
            {.name = {}, .folder = bytes_from_str(root), .is_columns = is_columns},
            static_cast<int64_t>(paths.size()), name_at,
            required ? Missing::kRefused : Missing::kAllowed);
      },
      nb::arg("paths"), nb::arg("root") = "", nb::arg("required") = true,
      nb::arg("is_columns") = false,
      nb::sig("def suffix_of_files(paths: list[str], root: str = '', required: bool = True, "
              "is_columns: bool = False) -> str | None"),
      "What the paths of a table in memory lack to be files in the folder: nothing, or a suffix. "
      "HR1402 where none of those that are tried is one; None instead, where they may be none.");
  module.def(
      "is_heading_of_files", [](std::string_view heading) { return is_heading_of_files(heading); },
      nb::arg("heading"), "Whether a column of that name may hold ids or paths: image_id.");
  nb::class_<ColumnList>(module, "ColumnList", "Columns of equal length, by name.")
      .def(nb::init<>())
      .def("add_array", &add_array, nb::arg("name"), nb::arg("array"), nb::arg("keep"),
           nb::arg("classes") = std::vector<std::string>(), nb::arg("kind") = nb::none(),
           "A dense array; its first axis is the record. keep: what must live as long. classes: "
           "names of the labels that it holds. kind: default, by its name and dtype.")
      .def("add_blobs", &add_blobs, nb::arg("name"), nb::arg("kind"), nb::arg("dtype"),
           nb::arg("parts"), nb::arg("keep"), nb::arg("files"),
           nb::sig("def add_blobs(self, name: str, kind: str, dtype: DType, parts: "
                   "Sequence[tuple[int, int, int, bool, int, int, int, int]], keep: object, "
                   "files: list[str]) -> None"),
           "Values of any length by address: (data, its bytes, offsets, offsets are int64, count, "
           "valid bits or 0, the first bit, -1). With a number of one of the files instead of -1, "
           "data is a place in it. keep: what keeps that memory.")
      .def(
          "add_paths",
          [](ColumnList& self, std::string name, const nb::list& paths, const nb::str& root,
             bool outside) {
            PathColumn column{.paths = {}, .root = bytes_from_str(root), .outside = outside};
            for (nb::handle path : paths) column.paths.push_back(bytes_from_str(path));
            self.columns.push_back({std::move(name), std::move(column)});
          },
          nb::arg("name"), nb::arg("paths"), nb::arg("root") = "", nb::arg("outside") = false,
          nb::sig("def add_paths(self, name: str, paths: list[str], root: str = '', outside: bool "
                  "= False) -> None"),
          "Files. root: the folder that paths from data are relative to; "
          "outside: and they may lead out of it.")
      .def(
          "add_texts",
          [](ColumnList& self, std::string name, std::vector<std::string> values,
             const std::optional<std::string>& kind) {
            self.columns.push_back({std::move(name), TextColumn{std::move(values)}});
            if (kind) self.columns.back().kind = kind_from_name(*kind);
          },
          nb::arg("name"), nb::arg("values"), nb::arg("kind") = nb::none(),
          "Strings. kind: text or label; default, by the name.")
      .def(
          "source",
          [](ColumnList& self, const std::string& title) {
            return SourceHandle{records(std::move(self.columns), title)};
          },
          nb::arg("title") = "", "The source; the list is empty then. title: how it is described.");
}

}  // namespace headrace::python
