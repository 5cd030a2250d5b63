// SPDX-License-Identifier: Apache-2.0
// Sources made of columns (headrace.records), and views of sources.
#include "headrace/sources/columns/columns.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "bindings/bindings.h"
#include "headrace/formats/folder/record_files.h"
#include "headrace/sources/field_names.h"
#include "headrace/sources/named_files.h"

namespace headrace::python {
namespace {

struct ColumnList {
  std::vector<Column> columns;
};

using Which = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Maps numbers that PathColumn::which cannot represent to ones that no column has.
std::vector<uint32_t> numbers_from(const std::optional<Which>& which) {
  std::vector<uint32_t> out;
  if (!which) return out;
  constexpr int64_t kMax = UINT32_MAX;
  out.reserve(which->size());
  for (const int64_t number : std::span(which->data(), which->size())) {
    out.push_back(static_cast<uint32_t>(number < 0 ? kMax : std::min(number, kMax)));
  }
  return out;
}

// The array is not copied, but borrowed as long as any view of the source lives.
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

void add_window(ColumnList& self, std::string name, nb::object array, std::vector<int64_t> offsets,
                std::vector<int64_t> ends, bool padding) {
  const TensorView view = borrowed_view(array);
  ArrayColumn values{view.data, view.dtype, view.shape.at(0),
                     Shape(view.shape.begin() + 1, view.shape.end()),
                     std::make_shared<OwnedObject>(nb::make_tuple(array))};
  self.columns.push_back(
      {std::move(name),
       WindowColumn{std::move(values), std::move(offsets), std::move(ends), padding},
       FieldKind::kTensor});
}

// (data, its bytes, offsets, whether they are int64, count, valid bits or 0, the first bit of them,
// file); positions are addresses of memory that `keep` keeps alive, or for the data positions in a
// file if its number is not -1.
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
      "The suffix to append to a table's paths so that they name files in the folder; empty if "
      "none is needed. If none of the paths tried is a file: HR1402, or None with required=False.");
  module.def(
      "is_heading_of_files", [](std::string_view heading) { return is_heading_of_files(heading); },
      nb::arg("heading"), "Whether a column of that name may hold ids or paths, such as image_id.");
  module.def(
      "is_field_name",
      [](const nb::str& given) {
        const std::string name = bytes_from_str(given);
        return is_field_name(name) && !is_reserved_field(name);
      },
      nb::arg("name"), "Whether a column may have this name.");
  module.def(
      "stays_inside", [](const nb::str& path) { return stays_inside(bytes_from_str(path)); },
      nb::arg("path"), "Whether a path in data stays below the folder that it is relative to.");
  nb::class_<ColumnList>(module, "ColumnList", "Columns of equal length, by name.")
      .def(nb::init<>())
      .def("add_array", &add_array, nb::arg("name"), nb::arg("array"), nb::arg("keep"),
           nb::arg("classes") = std::vector<std::string>(), nb::arg("kind") = nb::none(),
           "A dense array; its first axis is the record. keep: an object to keep alive for as "
           "long. classes: class names of its labels. kind: by default inferred from name and "
           "dtype.")
      .def("add_blobs", &add_blobs, nb::arg("name"), nb::arg("kind"), nb::arg("dtype"),
           nb::arg("parts"), nb::arg("keep"), nb::arg("files"),
           nb::sig("def add_blobs(self, name: str, kind: str, dtype: DType, parts: "
                   "Sequence[tuple[int, int, int, bool, int, int, int, int]], keep: object, "
                   "files: list[str]) -> None"),
           "Values of any length by address: (data, its bytes, offsets, offsets are int64, count, "
           "valid bits or 0, the first bit, -1). With the number of a file instead of -1, data is "
           "an offset in that file. keep: the object that owns the memory.")
      .def(
          "add_paths",
          [](ColumnList& self, std::string name, const nb::list& paths, const nb::str& root,
             bool outside, const std::string& kind, const std::optional<Which>& which,
             std::string times) {
            PathColumn column{.paths = {},
                              .which = numbers_from(which),
                              .root = bytes_from_str(root),
                              .outside = outside,
                              .times = std::move(times)};
            for (nb::handle path : paths) column.paths.push_back(bytes_from_str(path));
            self.columns.push_back({std::move(name), std::move(column)});
            if (!kind.empty()) self.columns.back().kind = kind_from_name(kind);
          },
          nb::arg("name"), nb::arg("paths"), nb::arg("root") = "", nb::arg("outside") = false,
          nb::arg("kind") = "", nb::arg("which") = nb::none(), nb::arg("times") = "",
          nb::sig("def add_paths(self, name: str, paths: list[str], root: str = '', outside: bool "
                  "= False, kind: str = '', which: object = None, times: str = '') -> None"),
          "Files. root: the base folder of paths from data; outside: whether they may point "
          "outside it. which: an int64 array, the index of each record's path, if records "
          "share files. times: the field with the times of the frames that a record needs of its "
          "video.")
      .def(
          "add_texts",
          [](ColumnList& self, std::string name, std::vector<std::string> values,
             const std::optional<std::string>& kind, const std::optional<Which>& which) {
            self.columns.push_back(
                {std::move(name), TextColumn{std::move(values), numbers_from(which)}});
            if (kind) self.columns.back().kind = kind_from_name(*kind);
          },
          nb::arg("name"), nb::arg("values"), nb::arg("kind") = nb::none(),
          nb::arg("which") = nb::none(),
          nb::sig("def add_texts(self, name: str, values: list[str], kind: str | None = None, "
                  "which: object = None) -> None"),
          "Strings. kind: text or label; default: by the name. which: an int64 array, the "
          "index of each record's string, if records share them.")
      .def("add_window", &add_window, nb::arg("name"), nb::arg("array"), nb::arg("offsets"),
           nb::arg("ends"), nb::arg("padding") = false,
           nb::sig("def add_window(self, name: str, array: object, offsets: Sequence[int], ends: "
                   "Sequence[int], padding: bool = False) -> None"),
           "Rows of an array at these distances from each record, clamped to its run; ends: for "
           "each run, the number after its last record. padding: delivers instead which of these "
           "rows are outside the run.")
      .def(
          "source",
          [](ColumnList& self, const std::string& title) {
            return SourceHandle{
                waited_for([&] { return records(std::move(self.columns), title); })};
          },
          nb::arg("title") = "",
          "The source; the list is empty afterwards. title: its description.");
}

}  // namespace headrace::python
