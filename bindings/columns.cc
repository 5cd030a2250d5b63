// SPDX-License-Identifier: Apache-2.0
// Sources made of columns (headrace.records), and views of sources.
#include "headrace/formats/columns.h"

#include <utility>

#include "bindings/bindings.h"

namespace headrace::python {
namespace {

struct ColumnList {
  std::vector<Column> columns;
};

// The array is borrowed for as long as any view of the source lives, not copied.
void add_array(ColumnList& self, std::string name, nb::object array, nb::object keep) {
  const TensorView view = borrowed_view(array);
  auto owner = std::make_shared<OwnedObject>(nb::make_tuple(array, keep));
  self.columns.push_back(
      {std::move(name), ArrayColumn{view.data, view.dtype, view.shape.at(0),
                                    Shape(view.shape.begin() + 1, view.shape.end()), owner}});
}

}  // namespace

void bind_columns(nb::module_& module) {
  nb::class_<ColumnList>(module, "ColumnList", "Columns of equal length, by name.")
      .def(nb::init<>())
      .def("add_array", &add_array, nb::arg("name"), nb::arg("array"), nb::arg("keep"),
           "A dense array; its first axis is the record. keep: what must live as long.")
      .def(
          "add_paths",
          [](ColumnList& self, std::string name, const nb::list& paths) {
            PathColumn column;
            for (nb::handle path : paths) column.paths.push_back(bytes_from_str(path));
            self.columns.push_back({std::move(name), std::move(column)});
          },
          nb::arg("name"), nb::arg("paths"),
          nb::sig("def add_paths(self, name: str, paths: list[str]) -> None"))
      .def(
          "add_texts",
          [](ColumnList& self, std::string name, std::vector<std::string> values) {
            self.columns.push_back({std::move(name), TextColumn{std::move(values)}});
          },
          nb::arg("name"), nb::arg("values"))
      .def("source", [](ColumnList& self) { return SourceHandle{records(self.columns)}; });
}

}  // namespace headrace::python
