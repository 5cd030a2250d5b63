// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/host_formats.h"

#include <utility>

#include "headrace/formats/arrays/array_errors.h"

namespace headrace {
namespace {

HostOpener& the_opener() {
  static HostOpener opener;
  return opener;
}

}  // namespace

void set_host_opener(HostOpener opener) { the_opener() = std::move(opener); }

Param host_fields_param() {
  return {.name = "fields",
          .type = ParamType::kStrings,
          .doc = "The columns to read, each \"name\" or \"field=name\". None: all."};
}

std::map<std::string, ParamValue> host_arguments(const Arguments& arguments) {
  std::map<std::string, ParamValue> out;
  if (!arguments.is_none("fields")) out["fields"] = arguments.texts("fields");
  out["outside"] = arguments.flag("outside");
  return out;
}

SourcePtr open_in_host(const std::string& format, const std::vector<std::string>& files,
                       const std::map<std::string, ParamValue>& arguments) {
  if (!the_opener()) {
    throw Exception(unsupported_array(files.empty() ? format : files.front(),
                                      "files of the format \"" + format +
                                          "\" are read by pyarrow, "
                                          "from Python only",
                                      "`headrace pack` makes a pack of them, which C++ opens too"));
  }
  return the_opener()(format, files, arguments);
}

}  // namespace headrace
