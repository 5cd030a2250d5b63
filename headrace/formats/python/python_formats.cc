// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/python/python_formats.h"

#include <utility>

#include "headrace/formats/arrays/array_errors.h"
#include "headrace/storage/storage.h"

namespace headrace {
namespace {

PythonOpener& the_opener() {
  static PythonOpener opener;
  return opener;
}

}  // namespace

void set_python_opener(PythonOpener opener) { the_opener() = std::move(opener); }

Param python_fields_param() {
  return {.name = "fields",
          .type = ParamType::kStrings,
          .doc = "The columns to read, each as \"name\" or \"field=name\". None: all."};
}

std::map<std::string, ParamValue> python_arguments(const Arguments& arguments) {
  std::map<std::string, ParamValue> out;
  if (!arguments.is_none("fields")) out["fields"] = arguments.texts("fields");
  out["allow_outside"] = arguments.flag("allow_outside");
  return out;
}

SourcePtr open_in_python(const std::string& format, const std::vector<std::string>& files,
                         const std::map<std::string, ParamValue>& arguments) {
  if (!the_opener()) {
    throw Exception(unsupported_array(
        files.empty() ? format : files.front(),
        "files of the format \"" + format + "\" are read by pyarrow, which requires Python",
        "convert them with `headrace pack`; packs can be opened from C++"));
  }
  if (format == "hdf5") {
    for (const std::string& file : files) local_path(file, "h5py (trusted=True)");
  }
  return the_opener()(format, files, arguments);
}

}  // namespace headrace
