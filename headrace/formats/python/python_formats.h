// SPDX-License-Identifier: Apache-2.0
// Formats whose files are read by a library of Python (Parquet and
// Arrow by pyarrow). They are recognized and described here as all others are;
// Python opens them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "headrace/base/parameters.h"
#include "headrace/sources/source.h"

namespace headrace {

// Called without any lock of Python held. Throws Exception.
using PythonOpener =
    std::function<SourcePtr(const std::string& format, const std::vector<std::string>& files,
                            const std::map<std::string, ParamValue>& arguments)>;

// Once, while Python's module is loaded.
void set_python_opener(PythonOpener opener);
// `fields=`, which these formats have in common; and the arguments that hold it where it is given,
// and `outside=` (named_files.h).
Param python_fields_param();
std::map<std::string, ParamValue> python_arguments(const Arguments& arguments);

// Throws Exception HR0425 where Python is not there to do it.
SourcePtr open_in_python(const std::string& format, const std::vector<std::string>& files,
                         const std::map<std::string, ParamValue>& arguments);

}  // namespace headrace
