// SPDX-License-Identifier: Apache-2.0
// Formats whose files are read by a library of the host language (Parquet and
// Arrow by pyarrow). They are recognized and described here as all others are;
// the host opens them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "headrace/base/parameters.h"
#include "headrace/sources/source.h"

namespace headrace {

// Called without any lock of the host held. Throws Exception.
using HostOpener =
    std::function<SourcePtr(const std::string& format, const std::vector<std::string>& files,
                            const std::map<std::string, ParamValue>& arguments)>;

// Once, while the host's module is loaded.
void set_host_opener(HostOpener opener);
// `fields=`, which these formats have in common; and the arguments that hold it where it is given,
// and `outside=` (named_files.h).
Param host_fields_param();
std::map<std::string, ParamValue> host_arguments(const Arguments& arguments);

// Throws Exception HR0425 where no host is there that could.
SourcePtr open_in_host(const std::string& format, const std::vector<std::string>& files,
                       const std::map<std::string, ParamValue>& arguments);

}  // namespace headrace
