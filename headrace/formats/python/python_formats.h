// SPDX-License-Identifier: Apache-2.0
// Formats whose files are read by a Python library (Parquet and Arrow by pyarrow). They are
// recognized and described here like all other formats, but opened in Python.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "headrace/base/parameters.h"
#include "headrace/sources/source.h"

namespace headrace {

// Called without the GIL held. Throws Exception.
using PythonOpener =
    std::function<SourcePtr(const std::string& format, const std::vector<std::string>& files,
                            const std::map<std::string, ParamValue>& arguments)>;

// Called once, when the Python module is loaded.
void set_python_opener(PythonOpener opener);
// `fields=`, which these formats have in common; and the arguments to pass to Python: `fields=` if
// given, and `allow_outside=` (named_files.h).
Param python_fields_param();
std::map<std::string, ParamValue> python_arguments(const Arguments& arguments);

// Throws Exception HR0425 if Python is not available.
SourcePtr open_in_python(const std::string& format, const std::vector<std::string>& files,
                         const std::map<std::string, ParamValue>& arguments);

}  // namespace headrace
